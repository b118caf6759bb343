package synth_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica"
	"ovs-offline/replica/release"
	"ovs-offline/replica/synth"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// worker makes a workdir with the OVN databases of a captured worker, which have two
// chassis: ovn-worker and ovn-worker2.
func worker(t *testing.T) *workdir.Dir {
	t.Helper()
	fidelity.NeedScratch(t)
	r, err := fidelity.Capture(t.Context(), "../../testdata/captures/ovn-kubernetes-worker", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return databases(t, collected.Report(t, r.Report).Path(), filepath.Join(ovs.Dir(t), "central"), both()...)
}

// make makes switches and returns what they are called, and whether anything was computed.
func makeSwitches(t *testing.T, wd *workdir.Dir, chassis ...string) (titles string, computed bool) {
	t.Helper()
	o := options(chassis...)
	o.Progress = func(text string) { computed = computed || strings.HasPrefix(text, "synthesising ") }
	made, err := synth.Make(t.Context(), wd, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range made {
		all = append(all, c.Title())
	}
	if _, err := os.Stat(filepath.Join(wd.Path(), ".scratch")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a scratch folder is left: %v", err)
	}
	return strings.Join(all, " "), computed
}

// has reports which chassis a workdir stands for, "" for databases alone.
func has(t *testing.T, path string) string {
	t.Helper()
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wd.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	_, conf := os.Stat(wd.Database(workdir.OVS))
	if s := m.Synthesis(); s != nil && conf == nil {
		return s.Title()
	} else if s != nil || conf == nil {
		t.Errorf("%s: the manifest and the files disagree: %v, %v", path, s, conf)
	}
	return ""
}

func below(t *testing.T, wd *workdir.Dir) string {
	t.Helper()
	paths, err := workdir.Below(wd.Chassis())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		names = append(names, has(t, path))
	}
	return strings.Join(names, " ")
}

// TestOneChassisOrSeveral makes one switch in the workdir and several below it, one after
// the other, and checks that nothing is computed twice, that nothing of another choice is
// left, and that the databases stay as they were collected.
func TestOneChassisOrSeveral(t *testing.T) {
	wd := worker(t)
	before, err := os.ReadFile(wd.Database(workdir.SB))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		chassis           []string
		made, here, below string
		computed          bool
	}{
		{nil, "", "", "", false},
		{[]string{synth.All}, "ovn-worker ovn-worker2", "", "ovn-worker ovn-worker2", true},
		{nil, "ovn-worker ovn-worker2", "", "ovn-worker ovn-worker2", false},
		{[]string{"ovn-worker2"}, "ovn-worker2", "ovn-worker2", "", true},
		{nil, "ovn-worker2", "ovn-worker2", "", false},
		{[]string{"6b8b4567-0000-4000-8000-000000000001"}, "ovn-worker", "ovn-worker", "", true},
		{[]string{synth.All}, "ovn-worker ovn-worker2", "", "ovn-worker ovn-worker2", true},
	} {
		made, computed := makeSwitches(t, wd, step.chassis...)
		if made != step.made || computed != step.computed || has(t, wd.Path()) != step.here || below(t, wd) != step.below {
			t.Errorf("%v: made %q (computed: %v), there is %q and below %q; want %+v", step.chassis, made, computed,
				has(t, wd.Path()), below(t, wd), step)
		}
	}
	if after, err := os.ReadFile(wd.Database(workdir.SB)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the collected database changed: %v", err)
	}
}

// TestAnotherDatabaseMakesAnotherSwitch changes the database below a switch.
func TestAnotherDatabaseMakesAnotherSwitch(t *testing.T) {
	wd := worker(t)
	makeSwitches(t, wd, "ovn-worker")
	transact(t, wd, `{"op":"delete","table":"Port_Binding","where":[["logical_port","==","ns1_client"]]}`)
	if _, computed := makeSwitches(t, wd); !computed {
		t.Error("the switch of the database as it was before stays")
	}
	text, err := os.ReadFile(wd.DumpFile("br-int", workdir.Flows))
	if err != nil || len(text) == 0 || slices.ContainsFunc(interfaces(t, wd.Path()),
		func(i named) bool { return i.id == "ns1_client" }) {
		t.Errorf("the port that is gone has an interface: %v", err)
	}
}

func transact(t *testing.T, wd *workdir.Dir, operation string) {
	t.Helper()
	ovs.Run(t, "ovsdb-tool", "transact", wd.Database(workdir.SB), `["OVN_Southbound",`+operation+`]`)
}

// TestSouthboundFollowsTheNorthboundDatabase has the southbound database computed, and again only
// after the northbound one has changed.
func TestSouthboundFollowsTheNorthboundDatabase(t *testing.T) {
	wd := worker(t)
	if err := os.Remove(wd.Database(workdir.SB)); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		needed, err := synth.Needed(wd, asked)
		if err != nil || needed != asked {
			t.Errorf("asked for chassis: %v, needed: %v, %v", asked, needed, err)
		}
	}
	computed := func() bool {
		t.Helper()
		sum, err := workdir.SumOf(t.Context(), wd.Database(workdir.SB))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		makeSwitches(t, wd, synth.All)
		after, err := workdir.SumOf(t.Context(), wd.Database(workdir.SB))
		if err != nil {
			t.Fatal(err)
		}
		return sum != after
	}
	if !computed() || computed() {
		t.Error("the database is not computed once")
	}
	ovs.Run(t, "ovsdb-tool", "transact", wd.Database(workdir.NB),
		`["OVN_Northbound",{"op":"insert","table":"Logical_Switch","row":{"name":"added"}}]`)
	if !computed() {
		t.Error("the database of the changed northbound one is not computed")
	}
	content, _, err := file.Read(t.Context(), wd.Database(workdir.SB), "Datapath_Binding")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(content.Rows("Datapath_Binding"),
		func(row ovsdb.Row) bool { return row.Value("external_ids", "name") == "added" }) {
		t.Error("it lacks the added switch")
	}
	if occupied, err := wd.Occupied(false, workdir.SB); err != nil || len(occupied) > 0 {
		t.Errorf("a collected database can't take its place: %q, %v", occupied, err)
	}
}

// TestAnotherReleaseMakesNothing checks that flows of another release of OVN are never
// taken for those of the node, and that the error says what would mend it.
func TestAnotherReleaseMakesNothing(t *testing.T) {
	wd := worker(t)
	makeSwitches(t, wd, "ovn-worker")
	transact(t, wd, `{"op":"update","table":"SB_Global","where":[],"row":{"options":["map",[["northd_internal_version","99.1.0-1.2.3-4"]]]}}`)
	_, err := synth.Make(t.Context(), wd, options("ovn-worker"))
	want := `the switch of ovn-worker can't be synthesised from the southbound database: no OVN of the node's release: the node ran OVN 99.1.0, and only an ovn-controller of OVN 99.1 can compute its flows: "ovs-offline image add SOURCE", with a container image (of a registry or a file) or a root directory that has OVN 99.1`
	if !errors.Is(err, release.ErrMissing) || err.Error() != want {
		t.Error(err)
	}
	if made := has(t, wd.Path()); made != "" {
		t.Errorf("the switch of the earlier database stays: %s", made)
	}
}

// TestGatewaysOfAGroup checks that the flows of a node send packets to the gateway that is
// active in the southbound database, as they do where BFD sees it: the one with the highest
// priority, gw1, or gw2 because gw1 does not answer.
func TestGatewaysOfAGroup(t *testing.T) {
	fidelity.NeedScratch(t)
	r, err := fidelity.Capture(t.Context(), "../../testdata/captures/ovn-openstack-compute", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	from := collected.Report(t, r.Report).Path()
	for _, c := range []struct{ active, tunnel, assumed string }{
		{"gw1", "dst=192.168.24.12,", "up with gw1, gw2"},
		{"gw2", "dst=192.168.24.13,", "up with gw2, and down with gw1, since an end did not answer before"},
	} {
		wd := databases(t, from, filepath.Join(ovs.Dir(t), c.active), both()...)
		bindGateways(t, wd, c.active)
		makeSwitches(t, wd, "compute1")
		m, err := wd.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if want := "BFD sessions whose state was not recorded are " +
			c.assumed; !slices.Contains(m.Synthesis().Assumptions, want) {
			t.Errorf("%s: the assumptions lack %q: %q", c.active, want, m.Synthesis().Assumptions)
		}
		wd.Unlock()
		n, err := fidelity.Adopt(t.Context(), wd.Path(), replica.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := n.Tool(t.Context(), "ovs-appctl", "ofproto/trace", "br-int",
			"in_port=2,icmp,dl_dst=fa:16:3e:ee:00:02,dl_src=fa:16:3e:10:00:05,nw_src=192.168.10.5,nw_dst=172.24.4.1,icmp_type=8,nw_ttl=64")
		if err != nil || !strings.Contains(text, c.tunnel) {
			t.Errorf("the packet does not go to %s, %s: %v\n%s", c.active, c.tunnel, err, text)
		}
		n.Close(t.Context())
	}
}

// bindGateways binds the gateway ports of a southbound database to a chassis.
func bindGateways(t *testing.T, wd *workdir.Dir, hostname string) {
	t.Helper()
	path := wd.Database(workdir.SB)
	if _, _, err := file.Standalone(t.Context(), path,
		path+".new"); err != nil { // that of a cluster member can't be changed
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	content, _, err := file.Read(t.Context(), path, "Chassis")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range content.Rows("Chassis") {
		if row.String("hostname") == hostname {
			transact(t, wd, `{"op":"update","table":"Port_Binding","where":[["type","==","chassisredirect"]],"row":{"chassis":["uuid","`+row.UUID+`"]}}`)
			return
		}
	}
	t.Fatalf("no chassis is called %s", hostname)
}

// TestCollectedDataIsNotReplaced checks when a switch is synthesised.
func TestCollectedDataIsNotReplaced(t *testing.T) {
	wd := worker(t)
	needed := func(asked, want bool) {
		t.Helper()
		if got, err := synth.Needed(wd, asked); err != nil || got != want {
			t.Errorf("asked: %v: needed: %v, %v", asked, got, err)
		}
	}
	needed(false, true)
	if err := os.Rename(wd.Database(workdir.NB), wd.Database(workdir.NB)+".away"); err != nil {
		t.Fatal(err)
	}
	needed(false, false)
	needed(true, true)
	if err := os.MkdirAll(wd.RestoreFlows(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wd.DumpFile("br0", workdir.Flows), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	needed(true, false)
}
