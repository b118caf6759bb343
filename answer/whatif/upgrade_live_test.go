package whatif

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/command"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/scratch"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// upgrading upgrades a live deployment to the programs of a root file system. The new ones end with the test.
type upgrading struct {
	*live
	root string
	*process.Runtime
	again bool // the deployment was upgraded before
}

// upgradingTo returns the upgrade to a root file system.
func (l *live) upgradingTo(root string, again bool) upgrading {
	return upgrading{l, root, process.New(process.Options{Root: root, Folders: []string{l.dir}}), again}
}

// start starts a daemon of the new release.
func (u upgrading) start(role, program, runDir string, args ...string) {
	u.t.Helper()
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		u.t.Fatal(err)
	}
	daemon := runtime.Daemon{Role: role, Program: program, Args: args, RunDir: runDir,
		Log: filepath.Join(runDir, "new-"+program+".log")}
	if err := u.Start(u.t.Context(), daemon); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		if err := u.Stop(context.Background(), daemon); err != nil {
			u.t.Error(err)
		}
	})
}

// serve replaces the server of a database, which has the new schema then. The new server keeps its files in runDir.
func (u upgrading) serve(role, server, database, socket, schema, runDir string) {
	u.t.Helper()
	if u.again {
		server = control(u.t, filepath.Join(runDir, "ovsdb-server"))
	}
	u.run("ovs-appctl", "-t", server, "exit")
	u.convert(database, filepath.Join(u.root, "usr/share", schema))
	u.start(role, "ovsdb-server", runDir, database, "--remote=punix:"+socket)
}

// upgradeCentral upgrades the OVN databases and ovn-northd.
func (u upgrading) upgradeCentral() {
	u.t.Helper()
	central := filepath.Dir(u.central(""))
	northd, upgraded := u.central("ovn-northd"), filepath.Join(central, "upgraded")
	if u.again {
		northd = filepath.Join(upgraded, "ovn-northd")
	}
	u.run("ovn-appctl", "-t", control(u.t, northd), "exit")
	for _, db := range []string{"nb", "sb"} {
		name := "ovn" + db + "_db"
		u.serve(db, u.central(name+".ctl"), u.central(name+".db"), u.central(name+".sock"), "ovn/ovn-"+db+".ovsschema",
			filepath.Join(central, "upgraded-"+db))
	}
	u.start("northd", "ovn-northd", upgraded, "--ovnnb-db=unix:"+u.central("ovnnb_db.sock"),
		"--ovnsb-db=unix:"+u.central("ovnsb_db.sock"))
}

// upgradeNode upgrades the Open vSwitch and the ovn-controller of a node.
func (u upgrading) upgradeNode(node string) {
	u.t.Helper()
	home := filepath.Join(u.dir, "nodes", node, "ovs")
	vswitchd := func(args ...string) string {
		return u.run(append([]string{"ovs-appctl", "-t", u.control(node, "ovs/ovs-vswitchd")}, args...)...)
	}
	neighbours := vswitchd("tnl/arp/show")
	controller := "ovn/ovn-controller"
	if u.again {
		controller = "ovs/ovn-controller"
	}
	u.run("ovn-appctl", "-t", u.control(node, controller), "exit", "--restart")
	vswitchd("exit")
	u.serve("db-"+node, u.control(node, "ovs/ovsdb-server"), filepath.Join(home, "conf.db"),
		filepath.Join(home, "db.sock"), "openvswitch/vswitch.ovsschema", home)
	u.start("vswitchd-"+node, "ovs-vswitchd", home, "--enable-dummy=system", "unix:"+filepath.Join(home, "db.sock"))
	address := strings.Trim(strings.TrimSpace(u.vsctl(node, "get", "Open_vSwitch", ".", "external_ids:ovn-encap-ip")),
		`"`) + "/24"
	vswitchd("netdev-dummy/ip4addr", "br-eth0", address)
	vswitchd("ovs/route/add", address, "br-eth0")
	for line := range strings.Lines(neighbours) {
		if words := strings.Fields(line); len(words) == 3 && words[2] == "br-eth0" {
			vswitchd("tnl/neigh/set", words[2], words[0], words[1])
		}
	}
	u.start("controller-"+node, "ovn-controller", home, "unix:"+filepath.Join(home, "db.sock"))
}

// convert converts a database to another schema, once the server that was told to exit has let go of it.
func (l *live) convert(database, schema string) {
	l.t.Helper()
	ovs.Await(l.t, "the lock of "+database, func() bool {
		_, err := command.Run(l.t.Context(), command.Command{Argv: []string{"ovsdb-tool", "convert", database, schema}})
		if err != nil && !strings.Contains(err.Error(), "already locked") {
			l.t.Fatal(err)
		}
		return err == nil
	})
}

// rezoned returns the state of a live node with the conntrack zones that have the same names in the computed one: where
// a release gives zones other names, it chooses their numbers again. So is a MAC address that ovn-northd chooses by
// chance when it is upgraded.
func (l *live) rezoned(s *Session, node string, state flowdiff.State) flowdiff.State {
	l.t.Helper()
	read := func(path string) map[string]string {
		content, _, err := file.Read(l.t.Context(), path, "Bridge")
		if err != nil {
			l.t.Fatal(err)
		}
		found := map[string]string{}
		for _, row := range content.Rows("Bridge") {
			for key, number := range row.Map("external_ids") {
				if name, ok := strings.CutPrefix(key, "ct-zone-"); ok {
					n, err := strconv.Atoi(number)
					if err != nil {
						l.t.Fatal(err)
					}
					found[name] = fmt.Sprintf("%#x", n)
				}
			}
		}
		return found
	}
	computed, numbers := read(s.scratch.Conf(node)), map[string]string{}
	for name, number := range read(filepath.Join(l.dir, "nodes", node, "ovs", "conf.db")) {
		numbers[number] = cmp.Or(computed[name], "no zone "+name)
	}
	monitors := func(path string) string {
		content, _, err := file.Read(l.t.Context(), path, "NB_Global")
		if err != nil {
			l.t.Fatal(err)
		}
		return content.Rows("NB_Global")[0].Map("options")["svc_monitor_mac_dst"]
	}
	random, chosen := monitors(l.central("ovnnb_db.db")), monitors(s.options.Dir.WorkingCopy(workdir.NB))
	renamed := flowdiff.State{Groups: state.Groups, Meters: state.Meters}
	for _, flow := range state.Flows {
		flow.Text = zone.ReplaceAllStringFunc(flow.Text, func(load string) string {
			number := zone.FindStringSubmatch(load)[1]
			return strings.Replace(load, number, cmp.Or(numbers[number], number), 1)
		})
		if random != "" {
			flow.Text = strings.ReplaceAll(flow.Text, random, chosen)
		}
		renamed.Flows = append(renamed.Flows, flow)
	}
	return renamed
}

// TestARealUpgradeDoesWhatWasRehearsed upgrades a live deployment after its upgrade was computed, first the databases
// and ovn-northd, then the nodes, and compares the flows of all nodes after each. An ACL whose match only the later
// releases know begins to drop real packets; those that it does not match arrive as before.
func TestARealUpgradeDoesWhatWasRehearsed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd",
		"ovn-nbctl", "unshare")
	fidelity.NeedScratch(t)
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) { upgradesAsRehearsed(t, filepath.Join(roots, release)) })
	}
}

func upgradesAsRehearsed(t *testing.T, root string) {
	if _, err := os.Stat(root); err != nil {
		t.Skip(err)
	}
	l := startLive(t)
	probe, err := sets.NewProbe(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	l.nbctl("--name=late", "acl-add", blue, "to-lport", "3000",
		fmt.Sprintf("outport == %q && tcp.dst == 443 && ct_mark.allow_established == 0", vm1), "drop")
	folder, err := workdir.Find(ovs.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := scratch.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scratch.Release(dir) })
	arrives := func(port uint16, want bool) {
		t.Helper()
		var at []string
		if want {
			at = []string{"vm1"}
		}
		if l.arrives(probe, packetOf{"vm2", "vm1", reach.Port{Protocol: "tcp", Number: port}}, at) != want {
			t.Errorf("port %d: the packet arrived: %t", port, !want)
		}
	}
	options := l.collect(dir)
	arrives(443, true)
	arrives(80, true)
	u := l.upgradingTo(root, false)
	options.Central = process.New(process.Options{Root: root, Folders: dir.RuntimeFolders()})
	removed := l.removed(dir)
	t.Run("central", func(t *testing.T) { l.asRehearsed(t, options, u.upgradeCentral, removed) })
	options.Runtime = options.Central
	t.Run("nodes", func(t *testing.T) {
		l.asRehearsed(t, options, func() {
			for _, node := range l.nodes {
				u.upgradeNode(node)
			}
		}, nil)
	})
	if probe, err = sets.NewProbe(l.dir); err != nil { // interfaces record anew
		t.Fatal(err)
	}
	arrives(443, false)
	arrives(80, true)
}

// removed returns what differs before any upgrade: the lab removes flows, which a new ovn-controller brings back.
func (l *live) removed(dir *workdir.Dir) (all []string) {
	l.t.Helper()
	s, err := Open(l.t.Context(), l.collect(dir))
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			l.t.Error(err)
		}
	}()
	for _, node := range l.nodes {
		state, renumbered := l.state(s, node)
		all = append(all, differences(s.now.states[node], state, map[string]bool{}, renumbered)...)
	}
	return all
}

// asRehearsed computes a phase of an upgrade, upgrades the live deployment, and compares the flows, but for known
// differences.
func (l *live) asRehearsed(t *testing.T, options Options, upgrade func(), known []string) {
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	upgrade()
	l.nbctl("sync")
	if _, err := s.Complaints(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, node := range l.nodes {
		state, renumbered := l.state(s, node)
		found := differences(s.now.states[node], l.rezoned(s, node, state), map[string]bool{}, renumbered)
		found = slices.DeleteFunc(found, func(text string) bool { return slices.Contains(known, text) })
		t.Logf("%s: %d flows rehearsed, %d installed", node, len(s.now.states[node].Flows), len(state.Flows))
		if len(found) > 0 {
			t.Errorf("%s: %d differences:\n%s", node, len(found), strings.Join(found[:min(20, len(found))], "\n"))
		}
	}
}

// packetOf is a first packet of one end point to another.
type packetOf struct {
	from, to string
	port     reach.Port
}

// arriving sends each packet into the live deployment, and returns which ones arrive. expected says where it waits for
// one.
func (l *live) arriving(packets []packetOf, expected map[packetOf]bool) map[packetOf]bool {
	l.t.Helper()
	probe, err := sets.NewProbe(l.dir) // interfaces record anew after an upgrade
	if err != nil {
		l.t.Fatal(err)
	}
	for _, node := range l.nodes { // each packet is the first of a connection
		l.run("ovs-appctl", "-t", l.control(node, "ovs/ovs-vswitchd"), "dpctl/flush-conntrack")
	}
	arrives := map[packetOf]bool{}
	for _, p := range packets {
		var at []string
		if expected[p] {
			at = []string{p.to}
		}
		arrives[p] = l.arrives(probe, p, at)
	}
	return arrives
}

// arrives sends a packet into the live deployment, and reports whether it arrives. at has the label of the end point
// where it is expected, if it is.
func (l *live) arrives(probe *sets.Probe, p packetOf, at []string) (arrived bool) {
	l.t.Helper()
	send := func() {
		var err error
		if arrived, err = probe.Send(l.t.Context(), p.from, p.port.Protocol, probe.Address(p.to), p.port.Number,
			at...); err != nil {
			l.t.Fatalf("%+v: %v", p, err)
		}
	}
	if len(at) == 0 {
		send()
		return arrived
	}
	return ovs.Resend(l.t, fmt.Sprintf("%+v", p), send, func() bool { return arrived })
}

// expecting returns which packets should arrive after a phase of an upgrade. The rehearsal decides for changed pairs;
// the others should arrive as before.
func expecting(before map[packetOf]bool, rehearsed []reach.Change) map[packetOf]bool {
	expected := maps.Clone(before)
	for _, change := range rehearsed {
		for _, asked := range change.After.Asked {
			p := packetOf{asked.From, asked.To, change.Port}
			if _, known := before[p]; known {
				expected[p] = asked.Verdict != answer.Unreachable
			}
		}
	}
	return expected
}

// plantLate adds ACLs whose matches only later releases know, to the switch of vm1, vm2 and vm3.
func (l *live) plantLate() {
	l.t.Helper()
	for name, acl := range map[string][]string{
		"drops from 25.03 on": {fmt.Sprintf("outport == %q && tcp.dst == 443 && ct_mark.allow_established == 0", vm1),
			"drop"},
		"allows from 25.03 on": {fmt.Sprintf("outport == %q && tcp.dst == 9443 && ct_mark.allow_established == 0", vm1),
			"allow-related"},
		"drops from 26.03 on": {"ip4 && tcp.dst == 80 && flags.igmp_loopback == 0", "drop"},
	} {
		l.nbctl("--name="+name, "acl-add", blue, "to-lport", "3000", acl[0], acl[1])
	}
}

// packetsOfPairs returns packets of each pair of VMs.
func packetsOfPairs() (packets []packetOf) {
	vms := []string{"vm1", "vm2", "vm3", "vm4", "vm5"}
	for _, from := range vms {
		for _, to := range vms {
			for _, port := range []reach.Port{{Protocol: "tcp", Number: 80}, {Protocol: "tcp", Number: 443},
				{Protocol: "tcp", Number: 9443}, {Protocol: "tcp", Number: 22}, {Protocol: "icmp"}} {
				if from != to {
					packets = append(packets, packetOf{from, to, port})
				}
			}
		}
	}
	return packets
}

// deployment returns the live deployment as it is collected now.
func (l *live) deployment() Deployment {
	l.t.Helper()
	folder, err := workdir.Find(ovs.Dir(l.t))
	if err != nil {
		l.t.Fatal(err)
	}
	collected := l.collect(folder)
	for _, node := range collected.Nodes { // as in a report of it: they name the release
		for kind, path := range map[workdir.Kind]string{workdir.NB: collected.NB, workdir.SB: collected.SB} {
			if err := os.MkdirAll(filepath.Dir(node.Dir.Database(kind)), 0o700); err != nil {
				l.t.Fatal(err)
			}
			if err := os.Link(path, node.Dir.Database(kind)); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	return Deployment{Nodes: collected.Nodes, NB: collected.NB, SB: collected.SB}
}

// fare sends the packets after a phase of an upgrade, and compares which of them arrive with the rehearsal. If tables
// collide, the rehearsal must not claim to know any pair.
func (l *live) fare(phase string, before map[packetOf]bool, packets []packetOf, said Effect) map[packetOf]bool {
	l.t.Helper()
	l.nbctl("sync")
	var expected map[packetOf]bool
	if len(said.Collisions) == 0 {
		expected = expecting(before, said.Pairs.Changed)
	}
	now := l.arriving(packets, expected)
	lost, gained := 0, 0
	for _, p := range packets {
		switch {
		case before[p] && !now[p]:
			lost++
		case now[p] && !before[p]:
			gained++
		}
		if now[p] != expected[p] && len(said.Collisions) == 0 {
			l.t.Errorf("%s: %+v arrived before: %t, now: %t, rehearsed: %t", phase, p, before[p], now[p], expected[p])
		}
	}
	if len(said.Collisions) > 0 && (len(said.Pairs.Changed) > 0 || said.Pairs.Undetermined != said.Pairs.Compared) {
		l.t.Errorf("%s: tables collide, and pairs are known: %+v", phase, said.Collisions)
	}
	l.t.Logf("%s: of %d packets, %d no longer arrive, and %d begin to; collisions: %v", phase, len(packets), lost, gained,
		said.Collisions)
	return now
}

// TestEachPairFaresAsRehearsed upgrades a live deployment twice: from the release of this machine to the next one, and
// then to the last. It sends real packets of each pair of VMs before and after each step. ACLs whose matches only
// later releases parse change the results of some packets: exactly those that the rehearsal names.
func TestEachPairFaresAsRehearsed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd",
		"ovn-nbctl", "unshare")
	to := addReleases(t)
	l := startLive(t)
	l.plantLate()
	packets := packetsOfPairs()
	before := l.arriving(packets, nil)
	for i, release := range releases() {
		result := rehearsed(t, Upgrade{Deployment: l.deployment(), To: versions.Pair{OVN: to[release]}, Mixed: true})
		u := l.upgradingTo(filepath.Join(os.Getenv("OVS_OFFLINE_ROOTS"), release), i > 0)
		u.upgradeCentral()
		l.fare(release+", databases and ovn-northd", before, packets, result.Mixed[0].Effect)
		for _, node := range l.nodes {
			u.upgradeNode(node)
		}
		if before = l.fare(release+", all", before, packets, result.Effect); len(result.Collisions) > 0 ||
			len(result.Pairs.Changed) == 0 {
			t.Errorf("%s: collisions %v, %d pairs changed", release, result.Collisions, len(result.Pairs.Changed))
		}
	}
}
