package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/pods/link"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// childPod is a pod whose programs are child processes of this one: ovs-offline, and the
// daemons that it started in a folder.
type childPod struct{ folder string }

func (childPod) Pod() string      { return "uid" }
func (p childPod) Folder() string { return p.folder }
func (childPod) String() string   { return "pod test/pod-0" }

// Stream starts ovs-offline.
func (p childPod) Stream(ctx context.Context, argv ...string) (io.ReadWriteCloser, error) {
	c := exec.CommandContext(ctx, os.Args[0], argv[1:]...)
	c.Args[0] = argv[0] // by which TestMain runs ovs-offline
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.WriteCloser
	}{out, in}, c.Start()
}

// inPods is a set whose replicas run in a pod: near is the folder of this machine, far that
// in the pod.
type inPods struct {
	t         *testing.T
	near, far string
}

// newInPods collects two nodes and starts their replicas in a pod.
func newInPods(t *testing.T) *inPods {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-nbctl")
	p := &inPods{t: t, near: filepath.Join(t.TempDir(), "near"), far: filepath.Join(ovs.Dir(t), "far")}
	p.must("", "-w", p.far, "collect", capture(t, "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"),
		capture(t, "ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"))
	if err := os.CopyFS(p.near, os.DirFS(p.far)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.run(context.Background(), "", "-w", p.far, "stop") })
	p.run(t.Context(), "", "-w", p.far, "start", "--runtime=process") // with defaults: exit code 3
	nodes, err := workdir.Below(p.near)
	if err != nil || len(nodes) != 2 {
		t.Fatal(nodes, err)
	}
	for _, path := range nodes {
		p.adopt(path)
	}
	return p
}

// adopt writes what a start in a cluster leaves in a workdir.
func (p *inPods) adopt(path string) {
	p.t.Helper()
	if err := os.Chmod(path, 0o700); err != nil {
		p.t.Fatal(err)
	}
	wd, err := workdir.Lock(path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer wd.Unlock()
	folder := filepath.Join(p.far, filepath.Base(path))
	far, err := workdir.Find(folder)
	if err != nil {
		p.t.Fatal(err)
	}
	report, err := replica.Report(far)
	if err != nil {
		p.t.Fatal(err)
	}
	place := replica.Place{Namespace: "test", Pod: "pod-0", UID: "uid", Folder: folder}
	e := replica.Elsewhere{Runtime: pods.Name, Place: place, Exec: []string{"echo", "exec"}}
	if err := e.Complete(wd, report); err != nil {
		p.t.Fatal(err)
	}
}

// printed is what a command line printed.
type printed struct {
	out, err string
	exit     int
}

func (p *inPods) run(ctx context.Context, stdin string, args ...string) printed {
	var out, errs bytes.Buffer
	exit := run(ctx, args, IO{In: strings.NewReader(stdin), Out: &out, Err: &errs},
		func(_ context.Context, wd *workdir.Dir, _ link.Attempt) (link.Host, error) {
			return childPod{filepath.Join(p.far, filepath.Base(wd.Path()))}, nil
		})
	return printed{out.String(), errs.String(), exit}
}

func (p *inPods) must(stdin string, args ...string) string {
	p.t.Helper()
	got := p.run(p.t.Context(), stdin, args...)
	if got.exit != 0 {
		p.t.Fatalf("%q: exit %d: %s", args, got.exit, got.err)
	}
	return got.out
}

func TestReplicaInAPod(t *testing.T) {
	p := newInPods(t)
	t.Run("commands", p.testCommands)
	t.Run("wrappers", p.testWrappers)
	t.Run("following logs", p.testLogs)
	t.Run("lost pod", p.testLostPod)
	t.Run("pod that can't be reached", p.testUnreachedPod)
	t.Run("status and show", p.testStatus)
}

// testCommands compares each command with the same one in the pod.
func (p *inPods) testCommands(t *testing.T) {
	for _, c := range []struct {
		stdin string
		argv  []string
		want  string // in the output
		exit  int
	}{
		{"", []string{"exec", "ovs-vsctl", "list-br"}, "br-int\n", 0},
		{"some input\n", []string{"exec", "sh", "-c", `cat; echo "$1" >&2; exit 7`, "x", "a 'b' \"c\"\n"}, "some input\n", 7},
		{"", []string{"exec", "--", "no-such-tool"}, "", exitNotFound},
		{"", []string{"trace", "--flow", "br-int in_port=1,icmp", "-o", "json"}, `"verdict"`, -1},
		{"priority=7,actions=drop\n", []string{"exec", "ovs-ofctl", "add-flows", "br-int", "-"}, "", 0},
		{"", []string{"exec", "ovs-ofctl", "--no-stats", "dump-flows", "br-int"}, " priority=7 actions=drop", 0},
		{"ovs-vsctl list-br; exit 5\n", []string{"shell"}, "br-int", 5},
		{"", []string{"logs", "ovs-vswitchd"}, "connmgr", 0},
		{"", []string{"logs", "no-such-daemon"}, "", exitUsage},
		{"", []string{"diff", "--columns", "statistics,status", "-o", "json"}, "statistics", exitFound},
		{"", []string{"diff"}, "", exitFound},
		{"", []string{"diff", "--", "no-such-port"}, "", 1},
		{"", []string{"report"}, "restored", 0},
		{"", []string{"flows", "--datapath", "-o", "json"}, `"current"`, -1},
		{"", []string{"graph", "--format", "dot"}, "br-int", 0},
	} {
		node := "compute1"
		near := p.run(t.Context(), c.stdin, append([]string{"-w", filepath.Join(p.near, node)}, c.argv...)...)
		far := p.run(t.Context(), c.stdin, append([]string{"-w", filepath.Join(p.far, node)}, c.argv...)...)
		near.out, near.err = strings.ReplaceAll(near.out, p.near, p.far), strings.ReplaceAll(near.err, p.near, p.far)
		if near != far || c.exit >= 0 && near.exit != c.exit || !strings.Contains(near.out, c.want) {
			t.Errorf("%q: exit %d, %s%s\nin the pod: exit %d, %s%s", c.argv, near.exit, near.out, near.err, far.exit, far.out,
				far.err)
		}
	}
}

func (p *inPods) testStatus(t *testing.T) {
	var status struct {
		Nodes map[string]replica.Status `json:"nodes"`
	}
	if err := json.Unmarshal([]byte(p.must("", "-w", p.near, "status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	for name, s := range status.Nodes {
		if !s.Ready || s.Runtime != pods.Name || s.Workdir != filepath.Join(p.near, name) || len(s.Daemons) < 3 ||
			s.Daemons[0].Container != "test/pod-0" || len(s.Flows) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if len(status.Nodes) != 2 {
		t.Errorf("%d nodes", len(status.Nodes))
	}
	shown := p.must("", "-w", filepath.Join(p.near, "compute1"), "show")
	for _, want := range []string{"in the pod test/pod-0",
		"ovs-offline -w " + filepath.Join(p.near, "compute1") + " exec ovs-appctl",
		"source " + filepath.Join(p.near, "compute1", "bin", "activate"), "statistics"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing in %s", want, shown)
		}
	}
	// A daemon that ends is noticed, and the exit code says so.
	p.must("", "-w", filepath.Join(p.near, "compute1"), "exec", "ovs-appctl", "exit")
	got := p.run(t.Context(), "", "-w", p.near, "status")
	if got.exit != 1 || !strings.Contains(got.out, "NOT READY") ||
		!strings.Contains(got.err, "node compute1: the replica is not ready") {
		t.Errorf("exit %d, %s%s", got.exit, got.out, got.err)
	}
}

func (p *inPods) testWrappers(t *testing.T) {
	bin := filepath.Join(p.near, "compute1", "bin")
	for tool, want := range map[string]string{
		"ovn-nbctl": "exec ovn-nbctl show\n",
		"ovs-vsctl-recorded": "exec ovs-vsctl --timeout=30 --db=unix:" +
			filepath.Join(p.far, "compute1", "var-run", "recorded", "db.sock") + " show\n",
	} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, tool), "show").CombinedOutput()
		if err != nil || strings.Replace(string(out), " --timeout=30", "", 1) != strings.Replace(want, " --timeout=30", "",
			1) {
			t.Errorf("%s: %v %s, want %s", tool, err, out, want)
		}
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", `. "$1" >/dev/null; echo "$OVN_NB_DB $OVS_RUNDIR"`, "bash",
		filepath.Join(bin, "activate")).CombinedOutput()
	varRun := filepath.Join(p.far, "compute1", "var-run")
	if err != nil || string(out) != "unix:"+filepath.Join(varRun, "ovn_nb", "db.sock")+" "+filepath.Join(varRun, "ovs")+
		"\n" {
		t.Errorf("%v %s", err, out)
	}
}

func (p *inPods) testLogs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), ovs.Patience())
	defer cancel()
	in, out := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"-w", filepath.Join(p.near, "compute1"), "logs", "-f", "ovs-vswitchd"},
			IO{In: strings.NewReader(""), Out: out, Err: io.Discard},
			func(_ context.Context, wd *workdir.Dir, _ link.Attempt) (link.Host, error) {
				return childPod{filepath.Join(p.far, filepath.Base(wd.Path()))}, nil
			})
	}()
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := in.Read(buffer)
			if err != nil || strings.Contains(string(buffer[:n]), "connmgr") {
				cancel()
				_, _ = io.Copy(io.Discard, in)
				return
			}
		}
	}()
	if code := <-exit; code != 0 || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("exit %d, %v", code, ctx.Err())
	}
}
