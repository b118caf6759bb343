package flows

import (
	"fmt"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// flooded are bridges that a flood reaches through patch ports, each with what it does to the
// packet before it sends it to a port.
var flooded = []struct{ bridge, flow string }{
	{"br-a", "udp,actions=mod_tp_dst:99,mod_nw_tos:32,mod_nw_ttl:9,output:1"},
	{"br-b", "udp,actions=ct(commit,zone=5,table=1)"},
	{"br-c", "actions=mod_dl_src:02:00:00:00:00:cc,output:1"},
	{"br-d", "udp,actions=ct(commit,zone=6,table=1)"},
}

// floodingSwitch starts a switch whose br0 floods to ports and to the bridges of flooded.
func floodingSwitch(t *testing.T) *ovs.Switch {
	t.Helper()
	live := ovs.Start(t, "--enable-dummy=override")
	live.Vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=dummy", "fail_mode=secure",
		"--", "set", "Open_vSwitch", ".", "other_config:max-idle=600000")
	live.Ofctl("add-flow", "br0", "actions=NORMAL")
	addPort(live, "p1")
	addPort(live, "p2")
	for i, f := range flooded {
		end := fmt.Sprintf("q%d", 10+i)
		live.Vsctl("add-br", f.bridge, "--", "set", "Bridge", f.bridge, "datapath_type=dummy", "fail_mode=secure",
			"--", "add-port", f.bridge, end, "--", "set", "Interface", end, "type=dummy", "ofport_request=1",
			"--", "add-port", f.bridge, "from-"+f.bridge, "--", "set", "Interface", "from-"+f.bridge, "type=patch",
			"options:peer=to-"+f.bridge, "ofport_request=2")
		live.Ofctl("add-flow", f.bridge, f.flow)
		live.Ofctl("add-flow", f.bridge, "table=1,actions=output:1")
		patch(live, f.bridge)
	}
	addPort(live, "p3")
	return live
}

func addPort(live *ovs.Switch, name string) {
	live.Vsctl("add-port", "br0", name, "--", "set", "Interface", name, "type=dummy")
}

func patch(live *ovs.Switch, bridge string) {
	live.Vsctl("add-port", "br0", "to-"+bridge, "--", "set", "Interface", "to-"+bridge, "type=patch",
		"options:peer=from-"+bridge)
}

// TestFloodsInAnotherOrderAreCurrent records a live switch whose flood reaches ports
// unchanged, and through bridges that change the packet and recirculate it. Its datapath has
// flows from before and after ports were added again, to which it floods last then: a replica
// can flood in only one of the orders.
func TestFloodsInAnotherOrderAreCurrent(t *testing.T) {
	live := floodingSwitch(t)
	send := func(host int) {
		for range 2 {
			live.Appctl("netdev-dummy/receive", "p1",
				fmt.Sprintf("in_port(1),eth(src=02:00:00:00:01:%02x,dst=ff:ff:ff:ff:ff:ff),eth_type(0x0800),ipv4(src=10.0.1.%d,dst=10.0.0.1,proto=17,tos=0,ttl=64,frag=no),udp(src=1000,dst=2000)", host, host))
		}
	}
	send(1)
	live.Appctl("revalidator/pause")
	for _, bridge := range []string{"br-a", "br-b"} {
		live.Vsctl("del-port", "br0", "to-"+bridge)
		patch(live, bridge)
	}
	live.Vsctl("del-port", "br0", "p2")
	addPort(live, "p2")
	send(2)
	r := replayed(t, live)
	if r.Current != 4 || r.Stale+r.Untraced+r.Lost > 0 {
		t.Errorf("%d current, %d stale, %d untraced and %d lost; want 4 current", r.Current, r.Stale, r.Untraced, r.Lost)
	}
}

// TestFramesWithoutTypeAreTraced records flows of frames that have a length in place of a
// type, as BPDUs have, with and without a tag.
func TestFramesWithoutTypeAreTraced(t *testing.T) {
	const body = "0026424203000000000080005254000001010000000480005254000001028001" +
		"0000140002000f000000000000000000000000"
	live := floodingSwitch(t)
	for _, frame := range []string{"ffffffffffff020000000001" + body, "ffffffffffff020000000001" + "81000005" + body,
		"0180c2000000020000000002" + body} {
		live.Appctl("netdev-dummy/receive", "p1", frame)
	}
	live.Appctl("revalidator/pause")
	r := replayed(t, live)
	if r.Current != 3 || r.Stale+r.Untraced+r.Lost > 0 {
		t.Errorf("%d current, %d stale, %d untraced and %d lost; want 3 current", r.Current, r.Stale, r.Untraced, r.Lost)
	}
}

// replayed records the switch, whose revalidators are paused, and replays its datapath flows.
func replayed(t *testing.T, live *ovs.Switch) *Replayed {
	t.Helper()
	wd := byHand(t, live)
	for _, f := range flooded {
		files.Write(t, wd.DumpFile(f.bridge, workdir.Flows), live.Ofctl("-O", "OpenFlow15", "dump-flows", f.bridge))
		files.Write(t, wd.BridgeRecorded(f.bridge, workdir.RecordedShow), live.Ofctl("show", f.bridge))
	}
	live.Appctl("revalidator/resume")
	r, err := Replay(t.Context(), []Source{{Dir: fidelity.Started(t, wd.Path()).Workdir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Flows {
		t.Logf("%s: %s\nrecorded %s\nnow      %s\n%s", m.State, m.Text, m.Actions, m.Now, m.Why)
	}
	return r
}
