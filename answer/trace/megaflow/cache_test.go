package megaflow

import (
	"context"
	"strconv"
	"testing"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// asked is a packet, and what ofproto/trace printed for it on a switch of the lab.
const (
	asked  = "in_port=3,tcp,dl_src=0a:58:0a:f4:01:05,dl_dst=0a:58:0a:f4:01:01,nw_src=10.244.1.5,nw_dst=10.96.10.11,nw_ttl=64,tcp_src=40000,tcp_dst=80"
	traced = `Flow: tcp,in_port=3,vlan_tci=0x0000,dl_src=0a:58:0a:f4:01:05,dl_dst=0a:58:0a:f4:01:01,nw_src=10.244.1.5,nw_dst=10.96.10.11,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=40000,tp_dst=80,tcp_flags=0

bridge("br-int")
----------------
 0. in_port=3, priority 100, cookie 0x1
    drop

Final flow: unchanged
Megaflow: recirc_id=0,eth,tcp,in_port=3,dl_dst=0a:58:0a:f4:01:01,nw_src=10.244.1.0/24,nw_dst=10.96.10.11,nw_frag=no,tp_dst=80
Datapath actions: drop
`
)

func parsed(t *testing.T, text string) flow.Packet {
	t.Helper()
	p, err := flow.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// with returns the packet that was asked about with other values of fields.
func with(t *testing.T, fields ...string) flow.Packet {
	t.Helper()
	p := parsed(t, asked)
	for i := 0; i < len(fields); i += 2 {
		p.Set(fields[i], fields[i+1])
	}
	return p
}

// TestPassServesThePacketsOfItsMegaflow checks which packets a pass is remembered for:
// those that differ only in bits that the megaflow leaves out.
func TestPassServesThePacketsOfItsMegaflow(t *testing.T) {
	passes, err := pass.Parse(traced)
	if err != nil {
		t.Fatal(err)
	}
	var c Cache
	c.Put("worker-1", "br-int", parsed(t, asked), passes[0])
	for name, test := range map[string]struct {
		packet flow.Packet
		found  bool
	}{
		"the same":                   {with(t), true},
		"another source port":        {with(t, "tp_src", "40001"), true},
		"an address of the prefix":   {with(t, "nw_src", "10.244.1.77"), true},
		"another source MAC":         {with(t, "dl_src", "0a:58:0a:f4:01:06"), true},
		"an address beyond it":       {with(t, "nw_src", "10.244.2.5"), false},
		"another destination":        {with(t, "nw_dst", "10.96.10.12"), false},
		"another destination port":   {with(t, "tp_dst", "443"), false},
		"another destination MAC":    {with(t, "dl_dst", "0a:58:0a:f4:01:02"), false},
		"another port":               {with(t, "in_port", "4"), false},
		"a VLAN tag":                 {with(t, "dl_vlan", "7"), false},
		"a field that was not asked": {with(t, "ct_mark", "0x1"), false},
	} {
		found, ok := c.Get("worker-1", "br-int", test.packet)
		if ok != test.found {
			t.Errorf("%s: found %v", name, ok)
			continue
		}
		if ok && (found.Flow.Get("tp_src") != test.packet.Get("tp_src") || found.Flow.Get("nw_frag") != "no" ||
			len(found.Stages) != 1) {
			t.Errorf("%s: the pass is about %s", name, found.Flow)
		}
	}
	for _, other := range [][2]string{{"worker-2", "br-int"}, {"worker-1", "br-ex"}} {
		if _, ok := c.Get(other[0], other[1], parsed(t, asked)); ok {
			t.Errorf("the pass serves %v too", other)
		}
	}
}

// TestConnectionStatesAreComparedByFlag checks a megaflow that matches some flags of
// ct_state.
func TestConnectionStatesAreComparedByFlag(t *testing.T) {
	passes, err := pass.Parse(traced)
	if err != nil {
		t.Fatal(err)
	}
	passes[0].Megaflow = "recirc_id=0x5,ct_state=+new-est+trk,ct_mark=0/0x1,eth,tcp,in_port=3,nw_frag=no"
	var c Cache
	c.Put("n", "br-int", with(t, "recirc_id", "0x5", "ct_state", "new|trk", "ct_mark", "0x2"), passes[0])
	for state, found := range map[string]bool{"new|trk": true, "new|trk|snat": true, "est|trk": false,
		"new|est|trk": false, "trk": false} {
		if _, ok := c.Get("n", "br-int", with(t, "recirc_id", "0x5", "ct_state", state, "ct_mark", "0x4")); ok != found {
			t.Errorf("ct_state=%s: found %v", state, ok)
		}
	}
	if _, ok := c.Get("n", "br-int", with(t, "recirc_id", "0x5", "ct_state", "new|trk", "ct_mark", "0x3")); ok {
		t.Error("ct_mark=0x3 is found, and the megaflow matches 0/0x1")
	}
}

// TestSimilarPacketsWaitForEachOther asks about packets to two ports at once: the second
// takes the pass of the first if its megaflow has no port, and is asked about otherwise.
func TestSimilarPacketsWaitForEachOther(t *testing.T) {
	for port, served := range map[string]bool{"": true, ",tp_dst=80": false} {
		passes, err := pass.Parse(traced)
		if err != nil {
			t.Fatal(err)
		}
		passes[0].Megaflow = "recirc_id=0,eth,tcp,in_port=3,nw_frag=no" + port
		var c Cache
		found, done, err := c.Await(t.Context(), "n", "br-int", with(t))
		if found != nil || err != nil {
			t.Fatal(found, err)
		}
		second := make(chan bool)
		go func() {
			found, done, err := c.Await(t.Context(), "n", "br-int", with(t, "tp_dst", "443"))
			if done != nil {
				done()
			}
			second <- found != nil && err == nil
		}()
		interrupted, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := c.Await(interrupted, "n", "br-int", with(t, "tp_dst", "22")); err == nil {
			t.Error("an interrupted question does not wait")
		}
		c.Put("n", "br-int", with(t), passes[0])
		done()
		if got := <-second; got != served {
			t.Errorf("with the megaflow %s, the second packet is served: %v", passes[0].Megaflow, got)
		}
	}
}

// TestOldPassesAreForgotten puts more passes into a cache than it holds.
func TestOldPassesAreForgotten(t *testing.T) {
	passes, err := pass.Parse(traced)
	if err != nil {
		t.Fatal(err)
	}
	passes[0].Megaflow = "recirc_id=0,eth,tcp,in_port=3,nw_frag=no,tp_src=1"
	packet := func(n int) flow.Packet { return with(t, "tp_src", strconv.Itoa(n)) }
	var c Cache
	for n := range 2*maxPasses + 1 {
		c.Put("n", "br-int", packet(n), passes[0])
	}
	for n, want := range map[int]bool{0: false, maxPasses - 1: false, maxPasses: true, 2 * maxPasses: true} {
		if _, ok := c.Get("n", "br-int", packet(n)); ok != want {
			t.Errorf("pass %d is remembered: %v", n, ok)
		}
	}
}
