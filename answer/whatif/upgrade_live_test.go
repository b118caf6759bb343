package whatif

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// upgrade upgrades the live deployment to the OVN of a root file system: first the databases and their ovn-northd, then
// the Open vSwitch and the ovn-controller of each node. These end with the test.
func (l *live) upgrade(root string) {
	l.t.Helper()
	rt := process.New(process.Options{Root: root, Folders: []string{l.dir}})
	start := func(role, program, runDir string, args ...string) {
		l.t.Helper()
		daemon := runtime.Daemon{Role: role, Program: program, Args: args, RunDir: runDir, Log: filepath.Join(runDir, "new-"+program+".log")}
		if err := rt.Start(l.t.Context(), daemon); err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() {
			if err := rt.Stop(context.Background(), daemon); err != nil {
				l.t.Error(err)
			}
		})
	}
	serve := func(role, control, database, socket, schema, runDir string) {
		l.t.Helper()
		if err := os.MkdirAll(runDir, 0o700); err != nil {
			l.t.Fatal(err)
		}
		l.run("ovs-appctl", "-t", control, "exit")
		l.convert(database, filepath.Join(root, "usr/share", schema))
		start(role, "ovsdb-server", runDir, database, "--remote=punix:"+socket)
	}
	central := filepath.Dir(l.central(""))
	l.run("ovn-appctl", "-t", control(l.t, l.central("ovn-northd")), "exit")
	for _, db := range []string{"nb", "sb"} {
		name := "ovn" + db + "_db"
		serve(db, l.central(name+".ctl"), l.central(name+".db"), l.central(name+".sock"), "ovn/ovn-"+db+".ovsschema", filepath.Join(central, "upgraded-"+db))
	}
	folder := filepath.Join(central, "upgraded")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		l.t.Fatal(err)
	}
	start("northd", "ovn-northd", folder, "--ovnnb-db=unix:"+l.central("ovnnb_db.sock"), "--ovnsb-db=unix:"+l.central("ovnsb_db.sock"))
	for _, node := range l.nodes {
		home := filepath.Join(l.dir, "nodes", node, "ovs")
		vswitchd := func(args ...string) string {
			return l.run(append([]string{"ovs-appctl", "-t", l.control(node, "ovs/ovs-vswitchd")}, args...)...)
		}
		neighbours := vswitchd("tnl/arp/show")
		l.run("ovn-appctl", "-t", l.control(node, "ovn/ovn-controller"), "exit", "--restart")
		vswitchd("exit")
		serve("db-"+node, l.control(node, "ovs/ovsdb-server"), filepath.Join(home, "conf.db"), filepath.Join(home, "db.sock"), "openvswitch/vswitch.ovsschema", home)
		start("vswitchd-"+node, "ovs-vswitchd", home, "--enable-dummy=system", "unix:"+filepath.Join(home, "db.sock"))
		address := strings.Trim(strings.TrimSpace(l.vsctl(node, "get", "Open_vSwitch", ".", "external_ids:ovn-encap-ip")), `"`) + "/24"
		vswitchd("netdev-dummy/ip4addr", "br-eth0", address)
		vswitchd("ovs/route/add", address, "br-eth0")
		for line := range strings.Lines(neighbours) {
			if words := strings.Fields(line); len(words) == 3 && words[2] == "br-eth0" {
				vswitchd("tnl/neigh/set", words[2], words[0], words[1])
			}
		}
		start("controller-"+node, "ovn-controller", home, "unix:"+filepath.Join(home, "db.sock"))
	}
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

// TestARealUpgradeDoesWhatWasRehearsed upgrades a live deployment after its upgrade was computed, and compares the
// flows of all nodes. An ACL whose match only the later releases know begins to drop real packets; those that it does
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
	options := l.collect(dir)
	options.Runtime = process.New(process.Options{Root: root, Folders: dir.RuntimeFolders()})
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
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
	arrives(443, true)
	arrives(80, true)
	l.upgrade(root)
	l.nbctl("sync")
	if _, err := s.complaints(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, node := range l.nodes {
		state, renumbered := l.state(s, node)
		found := differences(s.now.states[node], l.rezoned(s, node, state), map[string]bool{}, renumbered)
		t.Logf("%s: %d flows rehearsed, %d installed", node, len(s.now.states[node].Flows), len(state.Flows))
		if len(found) > 0 {
			t.Errorf("%s: %d differences:\n%s", node, len(found), strings.Join(found[:min(20, len(found))], "\n"))
		}
	}
	if probe, err = sets.NewProbe(l.dir); err != nil { // interfaces record anew
		t.Fatal(err)
	}
	arrives(443, false)
	arrives(80, true)
}
