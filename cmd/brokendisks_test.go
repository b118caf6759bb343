package cmd

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// disk is a kind of disk that a workdir is on, and on which nothing can be written.
type disk struct {
	reason string   // the message of a command that has to write
	works  []string // commands that need no room; all others fail
}

// TestBrokenDisks runs each command with a workdir on a read-only disk, with a full disk under
// the workdir and TMPDIR, and as another user than the owner of the workdir. A command either
// needs to write nothing, and works, or fails with the path and the reason; neither leaves a
// file. TestBrokenStreams fails if a new command has no line.
func TestBrokenDisks(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl", "ovn-northd", "ovn-controller")
	s := newSession(t, engines.Get(t, engines.Process))
	capture := filepath.Join(s.dir, "report.tar.xz")
	copyFile(t, "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz", capture)
	s.run("collect", capture)
	saved, image := filepath.Join(s.dir, "saved"), filepath.Join(s.dir, "image")
	s.run("save", saved)
	engines.HostArchive(t, image)
	n := newNamespace(t, &bench{dir: s.dir}, 4<<10)
	wd := n.top + "/wd"
	n.must(t, "cp", "-a", s.wd(), wd)
	n.must(t, "mkdir", n.top+"/tmp")
	n.must(t, "mkdir", "-p", "-m", "700", n.top+"/data/ovs-offline/images")
	n.must(t, "touch", n.top+"/data/ovs-offline/images/.lock")
	n.leave(t, 0)
	paths := map[string]string{"CAPTURE": capture, "FILE": saved, "IMAGE": image, "WORKDIR": wd, "NEW": n.top + "/new"}
	reading := []string{"cluster", "history", "list", "mcp", "help", "doctor", "image list", "completion bash",
		"completion zsh", "completion fish", "completion powershell"}
	t.Run("full", func(t *testing.T) {
		s.onDisk(t, n, disk{"no space left on device", append([]string{"save", "stop"}, reading...)}, paths)
	})
	n.must(t, "mount", "-o", "remount,ro", n.top)
	t.Run("read-only", func(t *testing.T) {
		s.onDisk(t, n, disk{"read-only file system",
			append([]string{"check", "compare", "flows", "top", "slow", "graph", "inspect", "save", "timeline"}, reading...)}, paths)
	})
	t.Run("of another user", func(t *testing.T) { s.asAnother(t, paths) })
}

// needReplica are the commands that only a running replica answers. Of a workdir without one
// they say so, before anything is written.
func needReplica() []string {
	return []string{"diff", "exec", "shell", "logs", "reach", "report", "show", "status", "trace", "translate"}
}

// onDisks returns the commands that run on a broken disk. A sweep runs all. Otherwise some read or write the workdir,
// some TMPDIR or the folder of images, some need a replica, and some need no disk.
func onDisks(t *testing.T) []string {
	t.Helper()
	var names []string
	for name, l := range wordsOfCommands() {
		if l.args != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return sweep.Named(t, names, func(name string) string { return name }, "collect", "collect-db-ovs", "load", "save",
		"image add", "start", "stop", "drift",
		"inspect", "compare", "flows", "graph", "history", "list", "mcp", "exec", "trace", "status")
}

// onDisk runs each command in a namespace with a broken disk.
func (s session) onDisk(t *testing.T, n *namespace, d disk, paths map[string]string) {
	before := pathsIn(t, n.inside(n.top))
	for _, name := range onDisks(t) {
		l := wordsOfCommands()[name]
		if name == "start" || name == "stop" {
			l.args = []string{name} // in the workdir with data
		}
		tmp := s.dir
		if d.reason == "no space left on device" {
			tmp = n.top + "/tmp"
		}
		argv := append([]string{"-m", "-t", strconv.Itoa(n.pid), "--", "env", "TMPDIR=" + tmp,
			"XDG_DATA_HOME=" + n.top + "/data", "OVS_DBG_WORKDIR=" + paths["WORKDIR"], filepath.Join(s.dir, "ovs-offline")},
			with(t, l.args, paths)...)
		c := exec.Command("nsenter", argv...)
		c.Env, c.Stdin = s.command().Env, strings.NewReader(l.stdin)
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		code, printed := exitOf(t, c.Run()), stderr.String()
		reasons := []string{d.reason, n.top}
		if slices.Contains(needReplica(), name) {
			reasons = []string{"start"}
		}
		switch {
		case slices.Contains(d.works, name):
			if code != exitDone && code != exitFound || stdout.Len() == 0 {
				t.Errorf("%s: exit code %d, and %d bytes:\n%s", name, code, stdout.Len(), printed)
			}
		case code != exitFailed || !containsAll(printed, reasons):
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", name, code, exitFailed, reasons, printed)
		}
		if after := pathsIn(t, n.inside(n.top)); !slices.Equal(before, after) {
			t.Errorf("%s: the disk has %q, not %q", name, after, before)
			before = after
		}
	}
}

// asAnother runs each command that uses the workdir as a user who does not own it.
func (s session) asAnother(t *testing.T, paths map[string]string) {
	dir := public(t)
	bin, wd := filepath.Join(dir, "ovs-offline"), filepath.Join(dir, "wd")
	copyFile(t, filepath.Join(s.dir, "ovs-offline"), bin)
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	capture, saved := filepath.Join(dir, "report.tar.xz"), filepath.Join(dir, "saved")
	copyFile(t, paths["CAPTURE"], capture)
	copyFile(t, paths["FILE"], saved)
	if out, err := exec.Command("sh", "-c", `cp -a "$1" "$2" && chmod -R a+rX "$2"`, "sh", s.wd(),
		wd).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := pathsIn(t, dir)
	none := []string{"inspect", "image add", "mcp", "doctor", "list", "help", "image list", "completion bash",
		"completion zsh", "completion fish", "completion powershell"}
	for _, name := range onDisks(t) {
		l := wordsOfCommands()[name]
		if slices.Contains(none, name) {
			continue // it does not use the workdir, or only the tools of mcp do
		}
		c := exec.Command(bin, with(t, l.args,
			map[string]string{"CAPTURE": capture, "FILE": saved, "WORKDIR": wd, "STARTED": wd, "NEW": wd})...)
		c.Dir, c.Env, c.Stdin = "/", append(s.command().Env, "OVS_DBG_WORKDIR="+wd, "HOME="+dir), strings.NewReader(l.stdin)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
		out, err := c.CombinedOutput()
		if code := exitOf(t, err); code != exitFailed ||
			!strings.Contains(string(out), "workdir "+wd+" belongs to uid 0, not to you") {
			t.Errorf("%s: exit code %d:\n%s", name, code, out)
		}
	}
	expect.Equal(t, pathsIn(t, dir), before, "the folder")
}

// pathsIn returns the paths below a folder, with the folder.
func pathsIn(t *testing.T, folder string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		list = append(list, strings.TrimPrefix(path, folder))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// containsAll reports whether a text has all parts.
func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
