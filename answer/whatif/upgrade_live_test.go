package whatif

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/command"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/scratch"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// upgrading upgrades a live deployment to the programs of a root file system. The new ones end with the test.
type upgrading struct {
	*live
	root string
	*process.Runtime
}

// start starts a daemon of the new release.
func (u upgrading) start(role, program, runDir string, args ...string) {
	u.t.Helper()
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		u.t.Fatal(err)
	}
	daemon := runtime.Daemon{Role: role, Program: program, Args: args, RunDir: runDir, Log: filepath.Join(runDir, "new-"+program+".log")}
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
func (u upgrading) serve(role, control, database, socket, schema, runDir string) {
	u.t.Helper()
	u.run("ovs-appctl", "-t", control, "exit")
	u.convert(database, filepath.Join(u.root, "usr/share", schema))
	u.start(role, "ovsdb-server", runDir, database, "--remote=punix:"+socket)
}

// upgradeCentral upgrades the OVN databases and ovn-northd.
func (u upgrading) upgradeCentral() {
	u.t.Helper()
	central := filepath.Dir(u.central(""))
	u.run("ovn-appctl", "-t", control(u.t, u.central("ovn-northd")), "exit")
	for _, db := range []string{"nb", "sb"} {
		name := "ovn" + db + "_db"
		u.serve(db, u.central(name+".ctl"), u.central(name+".db"), u.central(name+".sock"), "ovn/ovn-"+db+".ovsschema", filepath.Join(central, "upgraded-"+db))
	}
	u.start("northd", "ovn-northd", filepath.Join(central, "upgraded"), "--ovnnb-db=unix:"+u.central("ovnnb_db.sock"), "--ovnsb-db=unix:"+u.central("ovnsb_db.sock"))
}

// upgradeNode upgrades the Open vSwitch and the ovn-controller of a node.
func (u upgrading) upgradeNode(node string) {
	u.t.Helper()
	home := filepath.Join(u.dir, "nodes", node, "ovs")
	vswitchd := func(args ...string) string {
		return u.run(append([]string{"ovs-appctl", "-t", u.control(node, "ovs/ovs-vswitchd")}, args...)...)
	}
	neighbours := vswitchd("tnl/arp/show")
	u.run("ovn-appctl", "-t", u.control(node, "ovn/ovn-controller"), "exit", "--restart")
	vswitchd("exit")
	u.serve("db-"+node, u.control(node, "ovs/ovsdb-server"), filepath.Join(home, "conf.db"), filepath.Join(home, "db.sock"), "openvswitch/vswitch.ovsschema", home)
	u.start("vswitchd-"+node, "ovs-vswitchd", home, "--enable-dummy=system", "unix:"+filepath.Join(home, "db.sock"))
	address := strings.Trim(strings.TrimSpace(u.vsctl(node, "get", "Open_vSwitch", ".", "external_ids:ovn-encap-ip")), `"`) + "/24"
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
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := command.Run(l.t.Context(), command.Command{Argv: []string{"ovsdb-tool", "convert", database, schema}})
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "already locked") || time.Now().After(end) {
			l.t.Fatal(err)
		}
	}
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

// TestARealUpgradeDoesWhatWasRehearsed upgrades a live deployment after its upgrade was computed, first the databases and
// ovn-northd, then the nodes, and compares the flows of all nodes after each. An ACL whose match only the later releases know begins to drop real packets; those that it does
// not match arrive as before.
func TestARealUpgradeDoesWhatWasRehearsed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd", "ovn-nbctl", "unshare")
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
	l.nbctl("--name=late", "acl-add", blue, "to-lport", "3000", fmt.Sprintf("outport == %q && tcp.dst == 443 && ct_mark.allow_established == 0", vm1), "drop")
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
		arrived, err := probe.Send(t.Context(), "vm2", "tcp", "192.168.10.5", port, at...)
		if err != nil || arrived != want {
			t.Errorf("port %d: the packet arrived: %t, want %t (%v)", port, arrived, want, err)
		}
	}
	options := l.collect(dir)
	arrives(443, true)
	arrives(80, true)
	u := upgrading{l, root, process.New(process.Options{Root: root, Folders: []string{l.dir}})}
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
