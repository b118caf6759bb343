package restore_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/internal/logging"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/trace"
	"ovs-offline/workdir"
)

// liveNode is a node with real daemons, whose datapath is a dummy that behaves
// like the kernel's.
type liveNode struct {
	t    *testing.T
	dir  string                               // of sockets and, on a live node, conf.db
	tool func(argv ...string) (string, error) // runs a tool beside the daemons
}

// newLiveNode starts a node, which ends with the test.
func newLiveNode(t *testing.T) *liveNode {
	t.Helper()
	s := ovs.Start(t)
	return &liveNode{t: t, dir: s.Dir, tool: s.Try}
}

// run runs a tool beside the node and fails the test if the tool fails.
func (n *liveNode) run(argv ...string) string {
	n.t.Helper()
	out, err := n.tool(argv...)
	if err != nil {
		n.t.Fatalf("%q: %v", argv, err)
	}
	return out
}

func (n *liveNode) vsctl(args ...string) string {
	n.t.Helper()
	return n.run(append([]string{"ovs-vsctl"}, args...)...)
}

func (n *liveNode) appctl(args ...string) string {
	n.t.Helper()
	return n.run(append([]string{"ovs-appctl"}, args...)...)
}

func (n *liveNode) ofctl(args ...string) string {
	n.t.Helper()
	return n.run(append([]string{"ovs-ofctl"}, args...)...)
}

// likeKernel lowers the features of a bridge's datapath to those of the kernel's.
func (n *liveNode) likeKernel(bridge string) {
	n.t.Helper()
	for _, f := range []string{"tnl_push_pop=false", "explicit_drop_action=false", "lb_output_action=false",
		"nd_ext=false", "max_hash_alg=0"} {
		name, value, _ := strings.Cut(f, "=")
		n.appctl("dpif/set-dp-features", bridge, name, value)
	}
}

// report writes the files that sos would collect on the node, with sos's file names,
// and returns the directory.
func (n *liveNode) report() string {
	n.t.Helper()
	top := filepath.Join(n.t.TempDir(), "sosreport-node-2026-01-01-abcdefg")
	write := func(name, text string) {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			n.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	write("version.txt", "sosreport: 4.12.0\n")
	database, err := os.ReadFile(filepath.Join(n.dir, "conf.db"))
	if err != nil {
		n.t.Fatal(err)
	}
	write("etc/openvswitch/conf.db", string(database))
	for _, c := range n.commands() {
		out, err := n.tool(strings.Fields(c)...)
		if err != nil {
			out += err.Error() + "\n"
		}
		write("sos_commands/openvswitch/"+strings.NewReplacer(" ", "_", "/", ".").Replace(c), out)
	}
	return top
}

// commands returns the commands of sos that a replica depends on, except
// dpif/show-dp-features, which shows the features before likeKernel.
func (n *liveNode) commands() []string {
	list := []string{"ovs-vsctl -t 5 list-br"}
	for _, table := range []string{"Open_vSwitch", "bridge", "port", "interface", "datapath"} {
		list = append(list, "ovs-vsctl -t 5 list "+table)
	}
	for _, c := range []string{"bfd/show", "bond/show", "cfm/show", "lacp/show", "ofproto/list-tunnels", "ovs/route/show",
		"tnl/arp/show", "tnl/ports/show -v",
		"dpctl/show -s system@ovs-system", "dpctl/dump-flows -m system@ovs-system"} {
		list = append(list, "ovs-appctl "+c)
	}
	for bridge := range strings.Lines(n.vsctl("--real", "list-br")) {
		bridge = strings.TrimSpace(bridge)
		for _, c := range []string{"bridge/dump-flows --offload-stats", "fdb/show", "mdb/show"} {
			list = append(list, "ovs-appctl "+c+" "+bridge)
		}
		list = append(list, "ovs-ofctl show "+bridge)
		for _, c := range []string{"dump-flows", "dump-groups", "dump-meters", "dump-tlv-map", "meter-stats"} {
			list = append(list, "ovs-ofctl -O OpenFlow15 "+c+" "+bridge)
		}
	}
	return list
}

// replayed is a replica of a live node.
type replayed struct {
	*liveNode // to run tools beside the replica
	wd        *workdir.Dir
	report    *report.Report
}

// replay starts a replica of a report, without the named steps. It ends with the test.
func replay(t *testing.T, folder string, o process.Options, without ...string) *replayed {
	t.Helper()
	return replayBy(t, folder, process.New(o), nil, without...)
}

// replayBy works like replay, in the given runtime. The function add, unless it is nil,
// adds files to the workdir before the start.
func replayBy(t *testing.T, folder string, rt runtime.Runtime, add func(*workdir.Dir), without ...string) *replayed {
	t.Helper()
	return replayLogged(t, io.Discard, folder, rt, add, without...)
}

// replayLogged works like replayBy, and writes the log of -v.
func replayLogged(t *testing.T, log io.Writer, folder string, rt runtime.Runtime, add func(*workdir.Dir),
	without ...string) *replayed {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	if _, _, err := collect.Collect(t.Context(), wd, collect.SosReport{Path: folder},
		collect.Options{Select: collect.Select{OVS: true}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by then
		if err := replica.Stop(context.Background(), wd, rt); err != nil {
			t.Error(err)
		}
	})
	if add != nil {
		add(wd)
	}
	r, err := replica.Start(logging.NewContext(t.Context(), log), wd, rt, replica.Options{Without: without})
	if err != nil {
		t.Fatal(err)
	}
	runDir := wd.VarRun(workdir.OVS)
	tool := func(argv ...string) (string, error) {
		out, err := rt.Tool(t.Context(), runDir, nil, argv...)
		return string(out), err
	}
	return &replayed{liveNode: &liveNode{t: t, dir: runDir, tool: tool}, wd: wd, report: r}
}

// differences returns the packets ("BRIDGE FLOW [OPTION...]") whose traces differ,
// each with its first differing line.
func differences(live, replica *liveNode, packets ...string) []string {
	live.t.Helper()
	var list []string
	for _, p := range packets {
		args := append([]string{"ofproto/trace", "--names"}, strings.Fields(p)...)
		if c := trace.Compare(live.appctl(args...), replica.appctl(args...)); !c.Whole {
			list = append(list, fmt.Sprintf("%s: %s", p, c.First))
		}
	}
	return list
}

// anyDiffers reports whether the trace of any of the packets differs. It ends with the first that does.
func anyDiffers(live, replica *liveNode, packets ...string) bool {
	live.t.Helper()
	return slices.ContainsFunc(packets, func(p string) bool { return len(differences(live, replica, p)) > 0 })
}

// wantStep checks that a step, before the daemons or on them, reported a status
// and, where that is "restored", nothing worse; and that its details contain texts.
func (r *replayed) wantStep(name string, want report.Status, contains ...string) {
	r.t.Helper()
	var statuses []report.Status
	details := ""
	for _, s := range r.report.Steps {
		if s.Step == name {
			statuses = append(statuses, s.Status)
			details += strings.Join(s.Details, "\n") + "\n"
		}
	}
	worse := func(s report.Status) bool { return s != report.Restored && s != report.Idle }
	if !slices.Contains(statuses, want) || want == report.Restored && slices.ContainsFunc(statuses, worse) {
		r.t.Errorf("%s: %v, want %s; its details: %s", name, statuses, want, details)
	}
	for _, s := range contains {
		if !strings.Contains(details, s) {
			r.t.Errorf("%s: no detail contains %q: %s", name, s, details)
		}
	}
}

// log returns the log of the replica's ovs-vswitchd.
func (r *replayed) log() string {
	r.t.Helper()
	text, err := os.ReadFile(r.wd.Log("ovs-vswitchd"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// remove removes a command's output from an sos report.
func remove(t *testing.T, sos, output string) {
	t.Helper()
	if err := os.Remove(filepath.Join(sos, "sos_commands/openvswitch", output)); err != nil {
		t.Fatal(err)
	}
}

// What isolates daemons.
const (
	namespaces = "namespaces"
	filter     = "filter"
)

// isolations returns the options of the runtime for everything that isolates daemons here.
func isolations(t *testing.T) map[string]process.Options {
	t.Helper()
	all := map[string]process.Options{filter: {NoNamespaces: true}}
	if process.New(process.Options{}).HasLoopback(t.Context()) {
		all[namespaces] = process.Options{}
	}
	return all
}

// needNamespaces skips a test that needs daemons with a network of their own. Other tests
// cover the fallbacks.
func needNamespaces(t *testing.T) {
	t.Helper()
	rt := process.New(process.Options{})
	if !rt.HasLoopback(t.Context()) {
		_, why := rt.Isolated(t.Context())
		t.Skip("daemons get no network of their own here: ", why)
	}
}
