package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

func compute(t *testing.T) string {
	t.Helper()
	return captures.Report(t, "captures/ovn-openstack-compute")
}

// TestDaemonsHaveNoNetwork checks the network namespace of each daemon.
func TestDaemonsHaveNoNetwork(t *testing.T) {
	needTools(t)
	n := replay(t, compute(t), Options{})
	rt := process.New(process.Options{})
	if !rt.HasLoopback(context.Background()) {
		t.Skip("daemons get no network namespaces here")
	}
	for _, d := range daemons(n.wd) {
		pid := running(t, rt, d).PID
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "udplite", "raw", "raw6", "packet"} {
			raw, err := os.ReadFile(filepath.Join(proc, "net", table))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if lines := strings.Count(string(raw), "\n"); err != nil || lines > 1 {
				t.Errorf("%s has %s sockets (%v):\n%s", d.Role, table, err, raw)
			}
		}
		ours, _ := os.Readlink("/proc/self/ns/net")
		theirs, err := os.Readlink(filepath.Join(proc, "ns/net"))
		if err != nil || ours == theirs {
			t.Errorf("%s is in this process's network namespace (%v)", d.Role, err)
		}
	}
}

func running(t *testing.T, rt runtime.Runtime, d runtime.Daemon) runtime.State {
	t.Helper()
	s, err := rt.State(context.Background(), d)
	if err != nil || !s.Running || s.PID == 0 {
		t.Fatalf("%s: %+v %v", d.Role, s, err)
	}
	return s
}

// TestStopKeepsTheCollection compares the workdir before start and after stop.
func TestStopKeepsTheCollection(t *testing.T) {
	needTools(t)
	ctx := context.Background()
	wd := collected.Locked(t, compute(t))
	before := tree(t, wd.Path())
	rt := process.New(process.Options{})
	if _, err := Start(ctx, wd, rt, Options{}); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, d := range daemons(wd) {
		pids = append(pids, running(t, rt, d).PID)
	}
	if err := Stop(ctx, wd, rt); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		// A zombie has ended; its parent has not waited for it yet.
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil &&
			!strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %d is still there: %s", pid, stat)
		}
	}
	missing, extra := lines.Difference(before, tree(t, wd.Path()))
	if len(missing)+len(extra) > 0 {
		t.Errorf("stop left %v and took %v", extra, missing)
	}
}

// tree lists the files below a folder with size and time of change.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && e.IsDir() {
			list = append(list, path)
		} else if err == nil {
			list = append(list, path+" "+strconv.FormatInt(info.Size(), 10)+" "+info.ModTime().String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestStartReplacesARunningReplica starts twice, the second time after ovs-vswitchd was
// lost.
func TestStartReplacesARunningReplica(t *testing.T) {
	needTools(t)
	n := replay(t, compute(t), Options{})
	rt := process.New(process.Options{})
	if err := rt.Stop(context.Background(), vswitchd(n.wd)); err != nil {
		t.Fatal(err)
	}
	report, err := Start(context.Background(), n.wd, rt, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again := node{wd: n.wd, report: report}
	complete(t, again)
	if out := again.tool(t, "ovs-ofctl", "dump-flows", "br-int"); strings.Count(out, "actions=") != 958 {
		t.Errorf("br-int has %d flows, want 958", strings.Count(out, "actions="))
	}
}

// TestBridgesAreMadeFromDumps starts a replica of a report that has no conf.db.
func TestBridgesAreMadeFromDumps(t *testing.T) {
	needTools(t)
	ctx := context.Background()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	written, _, err := collect.Collect(ctx, wd, collect.SosReport{Path: withoutDatabase(t)},
		collect.Options{Select: collect.Select{OVS: true}})
	if err != nil {
		t.Fatal(err)
	}
	collections := written[0].Collections
	if len(collections) != 2 || collections[1].Kind != workdir.Host ||
		!strings.Contains(strings.Join(collections[0].Remarks, " "), "no conf.db") {
		t.Errorf("the collection doesn't say that it has no conf.db: %+v", collections)
	}
	rt := process.New(process.Options{})
	defer func() {
		if err := Stop(ctx, wd, rt); err != nil {
			t.Error(err)
		}
	}()
	report, err := Start(ctx, wd, rt, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := node{wd: wd, report: report}
	if c := report.Bridges[0].Counts[workdir.Flows]; c.Collected != 958 || c.Restored != 958 {
		t.Errorf("of 958 flows: %+v", *c)
	}
	out := n.tool(t, "ovs-appctl", "ofproto/trace", "br-int",
		"in_port=3,icmp,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,nw_src=192.168.10.5,nw_dst=192.168.10.6,icmp_type=8,nw_ttl=64")
	if !strings.Contains(out, "Datapath actions: ct(zone=") {
		t.Errorf("a trace answers:\n%s", out)
	}
}

// TestManyPortsWithoutDatabase starts a replica with more ports than an argument of a
// command can hold.
func TestManyPortsWithoutDatabase(t *testing.T) {
	needTools(t)
	ctx := context.Background()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	show := "OFPT_FEATURES_REPLY (xid=0x2): dpid:0000aaaaaaaaaaaa\n"
	for i := range 600 {
		show += fmt.Sprintf(" %d(port%d): addr:aa:aa:aa:aa:aa:aa\n     config:     0\n     state:      0\n", i+1, i+1)
	}
	for path, text := range map[string]string{
		wd.DumpFile("br0", workdir.Flows):              "NXST_FLOW reply (xid=0x4):\n priority=1,in_port=600 actions=output:599\n",
		wd.BridgeRecorded("br0", workdir.RecordedShow): show,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	rt := process.New(process.Options{})
	defer func() {
		if err := Stop(ctx, wd, rt); err != nil {
			t.Error(err)
		}
	}()
	report, err := Start(ctx, wd, rt, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := node{wd: wd, report: report}
	complete(t, n)
	if out := n.tool(t, "ovs-vsctl", "list-ports", "br0"); strings.Count(out, "\n") != 600 {
		t.Errorf("%d ports", strings.Count(out, "\n"))
	}
	if out := n.tool(t, "ovs-appctl", "ofproto/trace", "br0", "in_port=600,arp"); !strings.Contains(out, "output:599") {
		t.Errorf("a trace answers:\n%s", out)
	}
}

// withoutDatabase returns the compute capture, extracted, without its conf.db.
func withoutDatabase(t *testing.T) string {
	t.Helper()
	dir := extracted(t)
	if err := os.Remove(filepath.Join(dir, "var/lib/openvswitch/conf.db")); err != nil {
		t.Fatal(err)
	}
	return dir
}
