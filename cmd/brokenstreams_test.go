package cmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"ovs-offline/test/engines"
	"ovs-offline/test/ovs"
)

// words is a command line of a command that prints something, or takes a file.
type words struct {
	args  []string // CAPTURE, FILE, WORKDIR and NEW stand for paths
	stdin string
	file  []string // a command line whose argument FIFO is a file; nil for none
	not   string   // why the command is not run with a full disk under its output
}

// wordsOfCommands returns a line for each command of the program.
func wordsOfCommands() map[string]words {
	collect := func(name, data string) words {
		return words{args: []string{"-w", "NEW", name, data}, file: []string{"-w", "NEW", name, "FIFO"}}
	}
	database := func(name, file string) words { return collect(name, "WORKDIR/db/"+file) }
	const cluster, engine = "it needs a cluster: test/e2e/k8s", "it needs an engine, a registry, or minutes"
	return map[string]words{
		"build": {not: engine}, "image build": {not: engine}, "image push": {not: engine}, "collect-k8s": {not: cluster},
		"collect": collect("collect", "CAPTURE"), "collect-sos": collect("collect-sos", "CAPTURE"),
		"collect-sos-ovs": collect("collect-sos-ovs", "CAPTURE"), "collect-sos-ovn": collect("collect-sos-ovn", "CAPTURE"),
		"collect-db-ovs": database("collect-db-ovs", "ovs/conf.db"), "collect-db-ovn-nb": database("collect-db-ovn-nb", "ovn_nb/ovnnb_db.db"),
		"collect-db-ovn-sb": database("collect-db-ovn-sb", "ovn_sb/ovnsb_db.db"),
		"inspect":           {args: []string{"inspect", "CAPTURE"}, file: []string{"inspect", "FIFO"}},
		"compare":           {args: []string{"compare", "WORKDIR", "WORKDIR"}, file: []string{"compare", "WORKDIR", "FIFO"}},
		"diff":              {args: []string{"diff"}}, "doctor": {args: []string{"doctor"}}, "drift": {args: []string{"drift"}},
		"exec": {not: "its program prints"}, "shell": {not: "its shell prints"},
		"flows": {args: []string{"flows"}}, "top": {args: []string{"top"}}, "graph": {args: []string{"graph", "--format", "dot"}},
		"history": {args: []string{"history"}}, "list": {args: []string{"list"}}, "logs": {args: []string{"logs"}},
		"image list": {args: []string{"image", "list"}}, "image rm": {not: "it prints nothing"},
		"image add": {file: []string{"image", "add", "FIFO"}, not: "it needs an image: TestScripts/image"},
		"load":      {args: []string{"-w", "NEW", "load", "FILE"}, file: []string{"-w", "NEW", "load", "FIFO"}},
		"save":      {args: []string{"save", "-"}}, "mcp": {not: "its client reads: package mcp"},
		"reach": {args: []string{"reach", "--from", "p-vm1", "--to", "p-vm2"}}, "report": {args: []string{"report"}},
		"show": {args: []string{"show"}}, "status": {args: []string{"status"}},
		"start": {args: []string{"-w", "NEW", "start"}, not: "a replica would stay: TestScripts"}, "stop": {args: []string{"-w", "NEW", "stop"}},
		"trace":           {args: []string{"trace", "p-vm1", "p-vm2"}, file: []string{"trace", "--file", "FIFO"}},
		"translate":       {args: []string{"translate"}, stdin: "in_port(1)\n"},
		"what-if":         {args: []string{"what-if", "--", "ovn-nbctl", "ls-add", "new"}, file: []string{"what-if", "--file", "FIFO"}},
		"completion bash": {args: []string{"completion", "bash"}}, "completion zsh": {args: []string{"completion", "zsh"}},
		"completion fish": {args: []string{"completion", "fish"}}, "completion powershell": {args: []string{"completion", "powershell"}},
		"help": {args: []string{"help"}},
	}
}

// TestBrokenStreams checks each command with a full disk under its output, which it has to
// report and to exit with 1, and with a FIFO as its file, for which it must not wait. A new
// command has to be among wordsOfCommands.
func TestBrokenStreams(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl", "ovn-northd", "ovn-controller")
	s := newSession(t, engines.Get(t, engines.Process))
	capture, err := filepath.Abs("../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"CAPTURE": capture, "FILE": filepath.Join(s.dir, "saved"), "FIFO": filepath.Join(s.dir, "fifo"), "WORKDIR": s.wd()}
	if err := syscall.Mkfifo(paths["FIFO"], 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("collect", capture)
	s.run("start")
	t.Cleanup(func() { s.run("stop") })
	s.run("save", paths["FILE"])
	table := wordsOfCommands()
	root := newRoot(&options{IO: IO{Out: &bytes.Buffer{}}})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, name := range commandNames(root, "") {
		l, known := table[name]
		if !known {
			t.Errorf("%s: a new command needs a line in this test", name)
		}
		if l.not == "" && known {
			t.Run(name+" with a full disk under its output", func(t *testing.T) { s.intoFullDisk(t, l, paths) })
		}
		if l.file != nil {
			t.Run(name+" of a FIFO", func(t *testing.T) { s.ofFIFO(t, l.file, paths) })
		}
	}
}

// commandNames returns the names of the commands that can be run, without hidden ones.
func commandNames(c *cobra.Command, prefix string) []string {
	var names []string
	for _, sub := range c.Commands() {
		name := strings.TrimSpace(prefix + " " + sub.Name())
		switch {
		case sub.Hidden:
		case sub.HasSubCommands():
			names = append(names, commandNames(sub, name)...)
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// with returns a command line with the paths that its words stand for. NEW is a new folder
// where paths has no other.
func with(t *testing.T, args []string, paths map[string]string) []string {
	t.Helper()
	var pairs []string
	for word, path := range paths {
		pairs = append(pairs, word, path)
	}
	pairs = append(pairs, "NEW", filepath.Join(t.TempDir(), "wd")) // the first pair of a word counts
	var list []string
	for _, a := range args {
		list = append(list, strings.NewReplacer(pairs...).Replace(a))
	}
	return list
}

func (s session) intoFullDisk(t *testing.T, l words, paths map[string]string) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full: ", err)
	}
	defer full.Close()
	c := s.command(with(t, l.args, paths)...)
	var stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(l.stdin), full, &stderr
	code := exitOf(t, c.Run())
	if code != exitFailed || !strings.Contains(stderr.String(), "no space left on device") {
		t.Errorf("%q: got exit code %d, want %d and the reason:\n%s", l.args, code, exitFailed, &stderr)
	}
}

func (s session) ofFIFO(t *testing.T, args []string, paths map[string]string) {
	out, err := s.command(with(t, args, paths)...).CombinedOutput()
	if code := exitOf(t, err); code != exitFailed || !strings.Contains(string(out), "is a FIFO, not a regular file") {
		t.Errorf("%q: got exit code %d, want %d and that it is a FIFO:\n%s", args, code, exitFailed, out)
	}
}

// exitOf returns the exit code of a program that has run.
func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return exitDone
	}
	return exit.ExitCode()
}
