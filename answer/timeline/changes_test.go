package timeline

import (
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

// TestChangesOfRealDaemons runs a member of a cluster, and a switch with a bond whose interface goes down and up.
// The timeline shows the election, the compaction, the interfaces and the state of the link without --all.
func TestChangesOfRealDaemons(t *testing.T) {
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovs-vswitchd")
	db := filepath.Join(ovs.Dir(t), "nb.db")
	ovs.Run(t, "ovsdb-tool", "create-cluster", db, ovs.NBSchema, "unix:"+db+".raft")
	server := ovs.Serve(t, db, "--unixctl="+db+".ctl")
	server.Run("ovn-nbctl", ovs.Timeout(), "--db="+server.Remote, "ls-add", "sw0")
	server.Run("ovs-appctl", "-t", db+".ctl", "ovsdb-server/compact")
	server.Stop()
	s := ovs.Start(t)
	s.Run("ovs-vsctl", "add-br", "br0", "--", "add-bond", "br0", "bond0", "p1", "p2", "--", "set", "interface", "p1",
		"type=dummy", "--", "set", "interface", "p2", "type=dummy")
	s.Appctl("netdev-dummy/set-admin-state", "p1", "down")
	s.Appctl("netdev-dummy/set-admin-state", "p1", "up")
	s.Run("ovs-vsctl", "del-port", "br0", "bond0")
	const last = "bridge br0: deleted interface p1"
	log := filepath.Join(s.Dir, "ovs-vswitchd.log")
	// A thread of its own writes the log.
	ovs.Await(t, "the log of the deletion",
		func() bool { return strings.Contains(files.Read(t, log), "deleted interface p1") })
	s.Stop()
	dir := filepath.Join(t.TempDir(), "n1")
	byHand(t, dir, nil, map[string]string{"ovsdb-server-nb/ovsdb-server-nb.log": server.Log(),
		"ovs-vswitchd/ovs-vswitchd.log": files.Read(t, log)})
	entries, _ := read(t, dir, Query{}, 0)
	var all strings.Builder
	for _, e := range entries {
		all.WriteString(e.Program + " " + e.Module + ": " + e.Text + "\n")
	}
	for _, want := range []string{"ovsdb-server-nb raft: term 1: elected leader", "compact",
		"bridge br0: added interface p1", last, "bond: "} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q in:\n%s", want, &all)
		}
	}
}
