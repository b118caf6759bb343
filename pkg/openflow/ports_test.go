package openflow

import (
	"slices"
	"testing"
)

// TestPorts checks that the ports of an entry are found by number and by name, and that what only looks like one is
// not.
func TestPorts(t *testing.T) {
	for entry, want := range map[string][]string{
		"priority=1,in_port=p1 actions=output:p2": {"p1", "p2"},
		`in_port="patch-breth0_ov",ip actions=output:"Ethernet0 2",LOCAL`: {"patch-breth0_ov",
			"Ethernet0 2"},
		"in_port=LOCAL actions=IN_PORT,output:NXM_NX_REG15[],resubmit(,8)":                   nil,
		"in_port=2 actions=output:1,clone(set_field:5->vlan_vid,output:veth1),3":             {"2", "1", "veth1", "3"},
		"actions=output(port=gre0,max_len=64),enqueue:p3:7,controller(max_len=5),output:ALL": {"gre0", "p3"},
		"group_id=1,type=all,bucket=actions=output:p1,bucket=weight:5,actions=output:7":      {"p1", "7"},
		"reg15=0x1 actions=load:0x2->NXM_OF_IN_PORT[],output:reg0[0..15]":                    nil,
	} {
		if got := Ports(entry); !slices.Equal(got, want) {
			t.Errorf("%s: ports %q, want %q", entry, got, want)
		}
	}
}
