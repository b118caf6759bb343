package cmd

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// words is a command line of a command that prints something, and those in which it takes a file.
type words struct {
	args  []string // CAPTURE, FILE, IMAGE, WORKDIR, STARTED and NEW stand for paths
	stdin string
	files [][]string // command lines that read a file: FIFO stands for its path. A line without FIFO reads standard input
	not   string     // why nothing is checked with a broken output
}

// wordsOfCommands returns a line for each command of the program.
func wordsOfCommands() map[string]words {
	collect := func(name, data string) words {
		return words{args: []string{"-w", "NEW", name, data}, files: [][]string{{"-w", "NEW", name, "FIFO"}}}
	}
	database := func(name, file string) words { return collect(name, "WORKDIR/db/"+file) }
	const cluster, engine = "it needs a cluster: test/e2e/k8s", "it needs an engine, a registry, or minutes"
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n"
	return map[string]words{
		"build": {not: engine}, "image build": {not: engine}, "image push": {not: engine}, "shrink": {not: engine},
		"collect-k8s": {not: cluster},
		"collect":     collect("collect", "CAPTURE"), "collect-sos": collect("collect-sos", "CAPTURE"),
		"collect-sos-ovs": collect("collect-sos-ovs", "CAPTURE"), "collect-sos-ovn": collect("collect-sos-ovn", "CAPTURE"),
		"collect-db-ovs":    database("collect-db-ovs", "ovs/conf.db"),
		"collect-db-ovn-nb": database("collect-db-ovn-nb", "ovn_nb/ovnnb_db.db"),
		"collect-db-ovn-sb": database("collect-db-ovn-sb", "ovn_sb/ovnsb_db.db"),
		"inspect":           {args: []string{"inspect", "CAPTURE"}, files: [][]string{{"inspect", "FIFO"}}},
		"compare": {args: []string{"compare", "WORKDIR", "WORKDIR"},
			files: [][]string{{"compare", "WORKDIR", "FIFO"}, {"compare", "FIFO", "WORKDIR"}}},
		"diff": {args: []string{"diff"}}, "doctor": {args: []string{"doctor"}},
		"drift": {args: []string{"drift"}},
		"exec":  {args: []string{"exec", "ovs-vsctl", "show"}, not: "its program prints"},
		"shell": {args: []string{"shell"}, not: "its shell prints"},
		"check": {args: []string{"check"}}, "flows": {args: []string{"flows"}}, "top": {args: []string{"top"}},
		"slow":    {args: []string{"slow"}},
		"graph":   {args: []string{"graph", "--format", "dot"}, files: [][]string{{"graph", "--force", "FIFO"}}},
		"cluster": {args: []string{"cluster"}}, "history": {args: []string{"history"}}, "list": {args: []string{"list"}},
		"logs": {args: []string{"logs"}}, "timeline": {args: []string{"timeline"}},
		"image list": {args: []string{"image", "list"}}, "image rm": {not: "it prints nothing"},
		"image add": {args: []string{"image", "add", "docker-archive:IMAGE"}, files: [][]string{{"image", "add", "FIFO"}}},
		"load": {args: []string{"-w", "NEW", "load", "FILE"},
			files: [][]string{{"-w", "NEW", "load", "FIFO"}, {"-w", "NEW", "load", "-"}}},
		"save":  {args: []string{"save", "-"}, files: [][]string{{"save", "--force", "FIFO"}}},
		"mcp":   {args: []string{"mcp"}, stdin: hello, files: [][]string{{"mcp"}}},
		"reach": {args: []string{"reach", "--from", "p-vm1", "--to", "p-vm2"}}, "report": {args: []string{"report"}},
		"show": {args: []string{"show"}}, "status": {args: []string{"status"}},
		"start": {args: []string{"-w", "STARTED", "start"}}, "stop": {args: []string{"-w", "STARTED", "stop"}},
		"trace": {args: []string{"trace", "p-vm1", "p-vm2"},
			files: [][]string{{"trace", "--file", "FIFO"}, {"trace", "--file", "-"}, {"trace", "p-vm1", "--pcap", "FIFO"},
				{"trace", "--log", "FIFO"}, {"trace", "--log", "-"}}},
		"translate": {args: []string{"translate"}, stdin: "in_port(1)\n", files: [][]string{{"translate"}}},
		"what-if": {args: []string{"what-if", "--", "ovn-nbctl", "ls-add", "new"},
			files: [][]string{{"what-if", "--file", "FIFO"}, {"what-if", "--file", "-"}, {"what-if", "--nb", "FIFO"}}},
		"why":             {args: []string{"why", "p-vm1", "p-vm2"}},
		"bisect":          {args: []string{"bisect", "p-vm1", "p-vm2"}},
		"completion bash": {args: []string{"completion", "bash"}}, "completion zsh": {args: []string{"completion", "zsh"}},
		"completion fish":       {args: []string{"completion", "fish"}},
		"completion powershell": {args: []string{"completion", "powershell"}},
		"help":                  {args: []string{"help"}},
	}
}

// shapes returns a command of each way to print: a document, a list, a text of its own, a file to a pipe, lines while
// daemons are started, lines of a daemon's log, and answers to what it reads.
func shapes() []string {
	return []string{"report", "list", "completion bash", "trace", "save", "start", "logs", "translate", "mcp"}
}

// TestBrokenStreams checks each command with an output that can't be written: a full disk, which
// it has to report and to exit with 1; a pipe without a reader, which ends it; and a closed one.
// With a FIFO as its file it must not wait, and Ctrl-C ends a wait for a pipe. A new command has
// to be among wordsOfCommands.
func TestBrokenStreams(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl", "ovn-northd", "ovn-controller")
	s := newSession(t, engines.Get(t, engines.Process))
	capture, err := filepath.Abs("../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"CAPTURE": capture, "WORKDIR": s.wd()}
	for word, name := range map[string]string{"FILE": "saved", "FIFO": "fifo", "IMAGE": "image", "STARTED": "started"} {
		paths[word] = filepath.Join(s.dir, name)
	}
	if err := syscall.Mkfifo(paths["FIFO"], 0o600); err != nil {
		t.Fatal(err)
	}
	engines.HostArchive(t, paths["IMAGE"])
	t.Setenv("XDG_DATA_HOME", filepath.Join(s.dir, "data"))
	s.run("collect", capture)
	s.run("start")
	t.Cleanup(func() { s.run("stop") })
	s.run("-w", paths["STARTED"], "collect", capture)
	t.Cleanup(func() { s.run("-w", paths["STARTED"], "stop") })
	s.run("save", paths["FILE"])
	table := wordsOfCommands()
	root := newRoot(&options{IO: IO{Out: &bytes.Buffer{}}})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	names := append(commandNames(root, ""), "translate") // which the help does not list, and which reads
	some := func(kept ...string) []string {
		return sweep.Named(t, names, func(name string) string { return name }, kept...)
	}
	ofShapes := some(shapes()...)
	printing := some(append(shapes(), "check")...) // check ends with a code of its own, and not with a full disk
	for _, name := range names {
		l, known := table[name]
		if !known {
			t.Errorf("%s: a new command needs a line in this test", name)
		}
		if l.not == "" && known {
			if slices.Contains(printing, name) {
				t.Run(name+" with a full disk under its output", func(t *testing.T) { s.intoFullDisk(t, l, paths) })
			}
			if slices.Contains(ofShapes, name) {
				t.Run(name+" into a pipe without a reader", func(t *testing.T) { s.intoPipe(t, l, paths) })
				t.Run(name+" with a closed output", func(t *testing.T) { s.intoNothing(t, l, paths) })
			}
		}
		for _, args := range l.files {
			if slices.Contains(args, "FIFO") {
				t.Run(strings.Join(args, " "), func(t *testing.T) { s.ofFIFO(t, args, paths) })
			}
			t.Run(strings.Join(args, " ")+" of a pipe without an end", func(t *testing.T) { s.ofPipe(t, args, paths) })
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

// intoPipe runs a command into a pipe that has no reader any more, as that of head: SIGPIPE ends
// it, as other programs.
func (s session) intoPipe(t *testing.T, l words, paths map[string]string) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	c := s.command(with(t, l.args, paths)...)
	var stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(l.stdin), writer, &stderr
	code := exitOf(t, c.Run())
	status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
	if code != exitFailed && status.Signal() != syscall.SIGPIPE {
		t.Errorf("%q: got exit code %d, and signal %v:\n%s", l.args, code, status.Signal(), &stderr)
	}
}

// intoNothing runs a command without a standard output. Go opens /dev/null in its place before
// the program begins, so no other file gets the output, and all is as with >/dev/null.
func (s session) intoNothing(t *testing.T, l words, paths map[string]string) {
	null := s.command(with(t, l.args, paths)...)
	null.Stdin = strings.NewReader(l.stdin)
	closed := s.command(with(t, l.args, paths)...)
	closed.Path, closed.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$@" >&-`, "sh"}, closed.Args...)
	var stderr bytes.Buffer
	closed.Stdin, closed.Stderr = strings.NewReader(l.stdin), &stderr
	if want, code := exitOf(t, null.Run()), exitOf(t, closed.Run()); code != want {
		t.Errorf("%q: got exit code %d, want %d:\n%s", l.args, code, want, &stderr)
	}
}

// ofPipe runs a command with a pipe as its file, as a shell's <(...), that stays open, and sends
// SIGINT once it has read what is there. A command may refuse the pipe.
func (s session) ofPipe(t *testing.T, args []string, paths map[string]string) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	if _, err := writer.WriteString(" "); err != nil {
		t.Fatal(err)
	}
	c := s.command()
	if slices.Contains(args, "FIFO") {
		c.ExtraFiles = []*os.File{reader}
		paths = maps.Clone(paths)
		paths["FIFO"] = "/dev/fd/3"
	} else {
		c.Stdin = reader
	}
	c.Args = append(c.Args, with(t, args, paths)...)
	code, printed := watched(c, func(pid int, ended <-chan struct{}) {
		isOver := func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		}
		// It refuses the pipe, or reads what is there.
		if err := ovs.Until(t.Context(), "a command to read a pipe", func() bool {
			left, err := unix.IoctlGetInt(int(reader.Fd()), unix.TIOCINQ)
			return isOver() || err != nil || left == 0
		}); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if isOver() {
			return
		}
		_ = syscall.Kill(pid, syscall.SIGINT)
		if err := ovs.Until(t.Context(), "the end after SIGINT", isOver); err != nil {
			t.Errorf("%q: %v", args, err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if code != exitFailed || !strings.Contains(printed, "interrupted") &&
		!strings.Contains(printed, "is a FIFO, not a regular file") {
		t.Errorf("%q: got exit code %d, want %d:\n%s", args, code, exitFailed, printed)
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
