package k8s

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/machine"
)

// same are commands on a set, or on its first node, whose output on replicas in pods must
// be that on local processes.
var same = []struct {
	name string
	node bool // on the first node
	args []string
}{
	{name: "status", args: []string{"status"}},
	{name: "status of a node", node: true, args: []string{"status"}},
	{name: "report", args: []string{"report"}},
	{name: "trace", args: []string{"trace", "ns1/web-0", "ns2/db-0:5432"}},
	{name: "trace of a node", node: true, args: []string{"trace", "ns1/web-0", "ns1/client-0:80"}},
	{name: "reach", args: []string{"reach", "-o", "json"}},
	{name: "diff", node: true, args: []string{"diff"}},
	{name: "drift", args: []string{"drift"}},
	{name: "drift of a node", node: true, args: []string{"drift"}},
	{name: "flows", node: true, args: []string{"flows", "br-int"}},
	{name: "exec", node: true, args: []string{"exec", "ovs-appctl", "ofproto/trace", "br-int", "in_port=2,tcp"}},
	{name: "exit code", node: true, args: []string{"exec", "ovs-vsctl", "br-to-vlan", "missing"}},
	{name: "no such tool", node: true, args: []string{"exec", "missing-tool"}},
}

// TestCommandsOnPods runs all commands on a set in pods and on the same set as processes.
func TestCommandsOnPods(t *testing.T) {
	t.Parallel()
	folder, set := copyOfSet(t)
	c := newClient(t, folder)
	local, _ := copyOfSet(t)
	c.mustStart(t)
	if r := ovsOfflineRun(t, "-w", local, "start", "--runtime", "process"); r.code != 0 {
		t.Fatalf("start of processes: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	t.Cleanup(func() { ovsOfflineRun(t, "-w", local, "stop") })
	for _, command := range same {
		t.Run(command.name, func(t *testing.T) {
			in, out := folder, local
			if command.node {
				in, out = filepath.Join(folder, set.Nodes[0]), filepath.Join(local, set.Nodes[0])
			}
			got := ovsOfflineRun(t, append([]string{"-w", in}, command.args...)...)
			want := ovsOfflineRun(t, append([]string{"-w", out}, command.args...)...)
			if want.out == "" && want.complaints == "" {
				t.Fatal("no output of the processes")
			}
			if g, w := neutral(got.out, folder), neutral(want.out, local); got.code != want.code || g != w {
				t.Errorf("exit %d on pods, %d on processes\n%s\n%s", got.code, want.code, firstDifference(g, w), got.complaints)
			}
		})
	}
	t.Run("same reports", func(t *testing.T) {
		got, want := c.on(t, "report", "-o", "json"), ovsOfflineRun(t, "-w", local, "report", "-o", "json")
		if got.code != want.code || reportLines(got.out, folder) != reportLines(want.out, local) {
			t.Errorf("exit %d and %d\n%s", got.code, want.code,
				firstDifference(reportLines(got.out, folder), reportLines(want.out, local)))
		}
	})
	t.Run("packets of the set", func(t *testing.T) { c.samePackets(t, local) })
	node := c
	node.workdir = filepath.Join(folder, set.Nodes[0])
	t.Run("wrapper", func(t *testing.T) { node.wrapper(t) })
	t.Run("standard input", func(t *testing.T) { node.standardInput(t) })
	t.Run("logs", func(t *testing.T) { node.logs(t, filepath.Join(local, set.Nodes[0])) })
	t.Run("shell", func(t *testing.T) { node.shell(t) })
	t.Run("killed client", func(t *testing.T) { node.killedClient(t) })
	t.Run("killed shell", func(t *testing.T) { node.killedShell(t) })
	t.Run("interrupted shell", func(t *testing.T) { node.interruptedShell(t) })
	t.Run("another version", func(t *testing.T) { node.anotherVersion(t) })
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
	if left := processesOf(t, folder); len(left) > 0 {
		t.Errorf("processes of this machine are left: %q", left)
	}
}

// processesOf returns the command lines of the processes of ovs-offline, outside the cluster, that
// run for workdirs in a folder.
func processesOf(t *testing.T, folder string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		raw, _ := os.ReadFile(path) // it may have ended
		if line := strings.ReplaceAll(string(raw), "\x00", " "); strings.Contains(line, folder) {
			found = append(found, line)
		}
	}
	return found
}

var (
	runtimes = regexp.MustCompile(`\b(kubernetes|process|local processes)\b`)
	blanks   = regexp.MustCompile(`[ \t]+`)
	times    = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`)
	pids     = regexp.MustCompile(`TIME \d+( \S+/ovs-offline-\S+)?`) // in a table: with the pod
	recircs  = regexp.MustCompile(`\brecirc(\(|_id=)0x[0-9a-f]+\b`)
)

// neutral returns the output of a command without what differs between runtimes.
func neutral(text, folder string) string {
	text = strings.ReplaceAll(text, folder, "FOLDER")
	text = runtimes.ReplaceAllString(text, "RUNTIME")
	text = blanks.ReplaceAllString(times.ReplaceAllString(text, "TIME"), " ")
	return recircs.ReplaceAllString(pids.ReplaceAllString(text, "TIME PID"), "recirc${1}ID")
}

// samePackets traces packets of the set on the first bridge that they meet.
func (c client) samePackets(t *testing.T, local string) {
	t.Helper()
	asked := 0
	for _, p := range theSet.Packets {
		if asked == sweep.Count(10, 3) {
			break
		}
		asked++
		args := []string{"exec", "ovs-appctl", "ofproto/trace", p.Bridge, p.Flow}
		got := ovsOfflineRun(t, append([]string{"-w", filepath.Join(c.workdir, p.Node)}, args...)...)
		want := ovsOfflineRun(t, append([]string{"-w", filepath.Join(local, p.Node)}, args...)...)
		if g, w := neutral(got.out, c.workdir), neutral(want.out, local); want.code != 0 || got.code != want.code || g != w {
			t.Errorf("packet %d, %s: exit %d on pods, %d on processes\n%s", p.ID, p.Shows, got.code, want.code,
				firstDifference(g, w))
		}
	}
	if asked == 0 {
		t.Error("the set has no packets")
	}
}

// wrapper calls a tool by its wrapper, as a script does many times. The calls leave no process.
func (c client) wrapper(t *testing.T) {
	t.Helper()
	wrapper := filepath.Join(c.workdir, "bin", "ovs-vsctl")
	for range 5 {
		command := program(t)
		command.Path, command.Args = wrapper, []string{wrapper, "list-br"}
		began := time.Now()
		if r := finish(t, command); r.code != 0 || !slices.Contains(strings.Fields(r.out), "br-int") {
			t.Errorf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
		t.Logf("a call of a wrapper took %s", time.Since(began))
	}
	if left := processesOf(t, c.workdir); len(left) > 0 {
		t.Errorf("processes of this machine are left: %q", left)
	}
}

// standardInput adds flows that come from the standard input.
func (c client) standardInput(t *testing.T) {
	t.Helper()
	command := program(t, "-w", c.workdir, "exec", "ovs-ofctl", "add-flows", "br-int", "-")
	command.Stdin = strings.NewReader("table=250,priority=77,in_port=7,actions=drop\n")
	if r := finish(t, command); r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.complaints)
	}
	if r := c.on(t, "exec", "ovs-ofctl", "dump-flows", "br-int", "table=250"); !strings.Contains(r.out,
		"priority=77,in_port=7 actions=drop") {
		t.Errorf("the flow is missing: %s", r.out)
	}
}

// logs compares which daemons have logs.
func (c client) logs(t *testing.T, local string) {
	t.Helper()
	daemons := func(r result) (names []string) {
		for line := range strings.Lines(r.out) {
			if word := strings.Fields(line); len(word) > 0 && !slices.Contains(names, word[0]) {
				names = append(names, word[0])
			}
		}
		slices.Sort(names)
		return names
	}
	got, want := c.on(t, "logs"), ovsOfflineRun(t, "-w", local, "logs")
	if g, w := daemons(got), daemons(want); got.code != 0 || len(w) == 0 || !slices.Equal(g, w) {
		t.Errorf("exit %d, logs of %q, want %q\n%s", got.code, g, w, got.complaints)
	}
}

// shell types into a shell in the pod, in a terminal that changes its size.
func (c client) shell(t *testing.T) {
	t.Helper()
	term := inTerminal(t, program(t, "-w", c.workdir, "shell"))
	const size = `python3 -c 'import os; print("size", *os.get_terminal_size())'`
	term.types(t, "ovs-vsctl list-br; "+size)
	ovs.Await(t, "the bridges and the size of the terminal",
		func() bool { return term.shows("breth0") && term.shows("size 101 33") })
	term.resize(t, 20, 70)
	ovs.Await(t, "the new size", func() bool {
		term.types(t, size)                // the size takes a way of its own: what is typed may be there first
		time.Sleep(300 * time.Millisecond) // for the answer, so that few lines are typed
		return term.shows("size 70 20")
	})
	term.types(t, "exit 7")
	term.command.Wait()
	if code := term.command.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit %d, want 7", code)
	}
}

// running returns how many processes on the cluster's node have a text in their command lines.
func (c client) running(mark string) (count int) {
	for _, pid := range c.node.Processes() {
		if strings.Contains(machine.CommandLine(pid), mark) {
			count++
		}
	}
	return count
}

// killedShell kills a client whose shell in the pod has jobs, of which some ignore a hangup.
func (c client) killedShell(t *testing.T) {
	t.Helper()
	const mark = "45678"
	term := inTerminal(t, program(t, "-w", c.workdir, "shell"))
	const sleep = `python3 -c 'import time; time.sleep(` + mark + `)'`
	term.types(t, "(trap '' HUP TERM; "+sleep+") & "+sleep+" | "+sleep+" & "+sleep)
	ovs.Await(t, "the jobs to run", func() bool { return c.running("sleep("+mark+")") == 4 })
	shells := func() int { return c.running("worker1 shell") + c.running("/bin/sh -i") } // no other test has one
	if count := shells(); count < 2 {
		t.Fatalf("%d processes of the shell are found", count)
	}
	syscall.Kill(term.command.Process.Pid, syscall.SIGKILL)
	term.command.Wait()
	began := time.Now()
	ovs.Await(t, "all of the shell to end", func() bool { return c.running(mark)+shells() == 0 })
	t.Logf("all of the shell in the pod had ended %.1f s after its client", time.Since(began).Seconds())
}

// interruptedShell ends a client as a system does that shuts down.
func (c client) interruptedShell(t *testing.T) {
	t.Helper()
	term := inTerminal(t, program(t, "-w", c.workdir, "shell"))
	term.types(t, "ovs-vsctl list-br")
	ovs.Await(t, "the shell to answer", func() bool { return term.shows("breth0") })
	if term.cooked(t) {
		t.Error("the terminal changes what is typed in the shell")
	}
	syscall.Kill(term.command.Process.Pid, syscall.SIGTERM)
	term.command.Wait()
	if code := term.command.ProcessState.ExitCode(); code != 1 || !term.cooked(t) {
		t.Errorf("exit %d, the terminal is what it was before: %t", code, term.cooked(t))
	}
	ovs.Await(t, "a message", func() bool { return term.shows("\novs-offline: interrupted\r\n") })
}

// anotherVersion changes the version that is recorded to have started the replica.
func (c client) anotherVersion(t *testing.T) {
	t.Helper()
	path := filepath.Join(c.workdir, "replica.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`"version": *"[^"]*"`).ReplaceAllLiteral(text, []byte(`"version": "0.0.1"`))
	if bytes.Equal(other, text) {
		t.Fatalf("no version in %s", text)
	}
	files.Write(t, path, string(other))
	c.mustFail(t, []string{"was started by another version of ovs-offline", `"0.0.1"`, `with "ovs-offline start"`},
		"trace", "ns1/web-0", "ns1/client-0:80")
}

// killedClient kills a client whose command in the pod would run for a long time.
func (c client) killedClient(t *testing.T) {
	t.Helper()
	const mark = "56789"
	runs := func() bool { return c.running(mark) > 0 }
	command := program(t, "-w", c.workdir, "exec", "python3", "-c", "import time; time.sleep("+mark+")")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "the command to run", runs)
	syscall.Kill(command.Process.Pid, syscall.SIGKILL)
	command.Wait()
	began := time.Now()
	ovs.Await(t, "the command in the pod to end", func() bool { return !runs() })
	t.Logf("the command in the pod ended %.1f s after its client", time.Since(began).Seconds())
}
