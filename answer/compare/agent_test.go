package compare_test

import (
	"fmt"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// TestLocalVLANsAreNoChange gives the ports and the networks of a bridge of neutron's Open
// vSwitch agent other numbers, as a restart of the agent does, and its flows other cookies.
func TestLocalVLANsAreNoChange(t *testing.T) {
	s := ovs.Start(t)
	l := &lab{tb: t, nodes: map[string]*ovs.Switch{"compute1": s}}
	s.Vsctl("add-br", "br-int", "--", "add-br", "br-tun")
	wire := func(cookie, red, blue, first, second int) {
		for name, n := range map[string]struct{ tag, port int }{"tap-red": {red, first}, "tap-blue": {blue, second}} {
			s.Vsctl("--if-exists", "del-port", name, "--", "add-port", "br-int", name, fmt.Sprintf("tag=%d", n.tag), "--",
				"set", "Port", name, "other_config:net_uuid=net-"+name, fmt.Sprintf("other_config:tag=%d", n.tag), "--",
				"set", "Interface", name, fmt.Sprintf("ofport_request=%d", n.port))
			s.Vsctl("clear", "Interface", name, "ofport_request") // the port keeps the number
		}
		s.Ofctl("del-flows", "br-int")
		for _, flow := range []string{
			fmt.Sprintf("table=0,in_port=%d,actions=load:%d->NXM_NX_REG5[],load:%d->NXM_NX_REG6[],resubmit(,71)", first, first,
				red),
			fmt.Sprintf("table=71,reg5=%d,reg6=%d,actions=conjunction(%d,1/2)", second, blue, cookie),
			fmt.Sprintf("table=60,dl_vlan=%d,actions=strip_vlan,output:%d,output:%d", blue, first, second),
			fmt.Sprintf("table=61,ip,actions=mod_vlan_vid:%d,NORMAL", red),
		} {
			s.Ofctl("add-flow", "br-int", fmt.Sprintf("cookie=%d,%s", cookie, flow))
		}
	}
	wire(77, 1, 2, 11, 12)
	before := l.capture()
	wire(88, 2, 1, 22, 21)
	if expectLines(t, compared(t, before, l.capture())); t.Failed() {
		return
	}
	wire(88, 2, 1, 22, 21)
	s.Ofctl("add-flow", "br-int", "table=61,tcp,actions=mod_vlan_vid:1,NORMAL")
	expectLines(t, compared(t, before, l.capture()),
		"added: flow of br-int, table 61 of node compute1: table=61,priority=32768,tcp; actions push_vlan:0x8100,set_field:network net-tap-blue->vlan_vid,NORMAL")
}
