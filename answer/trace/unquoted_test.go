package trace

import (
	"path/filepath"
	"slices"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// TestErrorsWithoutTheirPacket asks about ICMP errors as flows, which lack the packet inside: one
// may belong to a connection, or to none.
func TestErrorsWithoutTheirPacket(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl")
	live := ovs.Start(t)
	live.Vsctl("add-br", "br0", "--", "add-port", "br0", "p1", "--", "set", "Interface", "p1", "ofport_request=1", "--",
		"add-port", "br0", "p2", "--", "set", "Interface", "p2", "ofport_request=2")
	live.Ofctl("del-flows", "br0")
	for _, flow := range []string{"table=0,in_port=1,icmp,actions=ct(zone=5,table=1)",
		"table=1,priority=1,actions=output:2", "table=1,priority=5,ct_state=+inv,icmp,nw_dst=10.0.0.3,actions=drop",
		"table=1,priority=9,icmp,nw_dst=10.0.0.4,actions=drop"} {
		live.Ofctl("add-flow", "br0", flow)
	}
	wd, err := workdir.Find(ovs.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, wd.Database(workdir.OVS), files.Read(t, filepath.Join(live.Dir, "conf.db")))
	files.Write(t, wd.DumpFile("br0", workdir.Flows), live.Ofctl("-O", "OpenFlow15", "dump-flows", "br0"))
	s := adopted(t, wd.Path())
	const same = "the packet inside the ICMP error is not known: the verdict is the same whether it belongs to a connection or not"
	for address, want := range map[string]answer.Verdict{"10.0.0.2": answer.Reachable, "10.0.0.3": answer.Undetermined,
		"10.0.0.4": answer.Unreachable} {
		question := "br0 in_port=1,icmp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.1,nw_ttl=64,icmp_type=3,icmp_code=3,nw_dst=" + address
		a, err := s.Flow(t.Context(), "", question, 0)
		if err != nil || a.Verdict != want || slices.Contains(a.Trust.Assumed, same) != (want != answer.Undetermined) {
			t.Errorf("%s: %v\n%s", question, err, text(a))
		}
	}
}
