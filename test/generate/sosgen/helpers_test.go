package sosgen

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ovs-offline/cmd"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "recordings")
	if err != nil {
		panic(err)
	}
	recordings.dir = dir
	os.Setenv("OVS_OFFLINE_RUNTIME", "process") // containers have tests of their own
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// recordings are the recordings of this run, by topology.
var recordings struct {
	sync.Mutex
	dir   string
	nodes map[string]*Node
}

// recorded returns the recording of a topology of the lab.
func recorded(t *testing.T, topology string) *Node {
	t.Helper()
	needLab(t)
	recordings.Lock()
	defer recordings.Unlock()
	if n := recordings.nodes[topology]; n != nil {
		return n
	}
	n, err := Load(sets.Node(t, lab, topology, recordings.dir))
	if err != nil {
		t.Fatal(err)
	}
	if recordings.nodes == nil {
		recordings.nodes = map[string]*Node{}
	}
	recordings.nodes[topology] = n
	return n
}

const lab = "../../../scripts/lab/lab"

func needLab(t *testing.T) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovn-nbctl", "ovn-northd", "ovn-controller",
		"ip")
	if !process.New(process.Options{}).HasLoopback(t.Context()) {
		t.Skip("the lab needs namespaces, which are forbidden here")
	}
}

// outcome is the exit code and output of a command.
type outcome struct {
	args     []string
	code     int
	out, err string
}

// run runs ovs-offline and checks what holds for every command: no stack trace, an
// error message with every failure, and an exit code of 0, 1 or 3.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	o := outcome{args: args, code: cmd.Main(args, cmd.IO{Out: &out, Err: &errs})}
	o.out, o.err = out.String(), errs.String()
	for _, bad := range []string{"panic:", "goroutine ", "%!", "<nil>"} {
		if strings.Contains(o.out+o.err, bad) {
			t.Errorf("the output of %q holds %q: %.2000s%.2000s", args, bad, o.out, o.err)
		}
	}
	if o.code != 0 && strings.TrimSpace(o.err) == "" {
		t.Errorf("%q exits with %d and prints nothing on stderr", args, o.code)
	}
	if o.code != 0 && o.code != 1 && o.code != 3 {
		t.Errorf("%q exits with %d: %s", args, o.code, o.err)
	}
	return o
}

// replica is a replica that a test started.
type replica struct {
	*fidelity.Replica
	collected outcome
	started   outcome
	report    *report.Report
	manifest  *workdir.Manifest
}

// replay collects paths into a new workdir and starts it.
func replay(t *testing.T, paths ...string) *replica {
	t.Helper()
	dir := shortDir(t)
	collected := collectInto(t, dir, paths...)
	if collected.code == 1 {
		t.Fatalf("%q: %s", collected.args, collected.err)
	}
	return start(t, dir, collected)
}

// shortDir returns the path of a new workdir, short enough for sockets in it.
func shortDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(ovs.Dir(t), "wd")
}

func collectInto(t *testing.T, dir string, paths ...string) outcome {
	t.Helper()
	return run(t, append([]string{"collect", "-w", dir}, paths...)...)
}

func start(t *testing.T, dir string, collected outcome) *replica {
	t.Helper()
	r := &replica{collected: collected, started: run(t, "start", "-w", dir, "-o", "json")}
	t.Cleanup(func() {
		if o := run(t, "stop", "-w", dir); o.code != 0 {
			t.Errorf("stop: %+v", o)
		}
	})
	if r.started.code == 1 {
		t.Fatalf("%q: %s", r.started.args, r.started.err)
	}
	if err := json.Unmarshal([]byte(r.started.out), &r.report); err != nil {
		t.Fatalf("the report of %s: %v: %.500s", dir, err, r.started.out)
	}
	wd, err := workdir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.manifest, err = wd.Manifest(); err != nil {
		t.Fatal(err)
	}
	r.Replica = &fidelity.Replica{Workdir: wd}
	if want := !r.report.Complete(); want != (r.started.code == 3) {
		t.Errorf("start exits with %d, and the report is complete: %v", r.started.code, !want)
	}
	return r
}

func (r *replica) tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := r.Tool(t.Context(), name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// words returns the report and the messages of collect.
func (r *replica) words() string {
	text, _ := json.Marshal(r.report) // it came from JSON
	return string(text) + r.collected.err
}

// log writes the figures of a replica to the test's log.
func (r *replica) log(t *testing.T, n *Node) fidelity.Figures {
	t.Helper()
	f, err := r.Compare(t.Context(), n.Packets(), n.Live())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("collect %d, start %d, %s", r.collected.code, r.started.code, f)
	for i, item := range r.report.Rejected {
		if i == 2 {
			t.Logf("and %d more are rejected", len(r.report.Rejected)-i)
			break
		}
		t.Logf("rejected: %.300s", item.Reason+": "+item.Text)
	}
	for _, b := range r.report.Bridges {
		for dump, c := range b.Counts {
			if c.Different > 0 {
				t.Logf("%s %s: %+v", b.Name, dump, *c)
			}
		}
	}
	for i, d := range f.Differences {
		if i < 2 {
			t.Logf("differs: %.400s", d)
		}
	}
	return f
}

// write writes a tree into a new folder.
func write(t *testing.T, tree Tree) string {
	t.Helper()
	dir := t.TempDir()
	if err := tree.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeTop writes a tree into a new folder of that name.
func writeTop(t *testing.T, name string, tree Tree) string {
	t.Helper()
	return filepath.Join(write(t, tree.Under(name)), name)
}
