package graph

import (
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
)

// TestUserDefinedNetworksHaveTheirNames draws the switch and the router of a user-defined network of
// ovn-kubernetes: a user finds them by the name of the network.
func TestUserDefinedNetworksHaveTheirNames(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	of := ovndb.Map("k8s.ovn.org/network", "blue_net-blue")
	nb.Add(ovndb.Rows{
		"Logical_Switch": {"11111111-1111-4111-8111-111111111111": {"name": "blue_net.blue_node1",
			"other_config": ovndb.Map("subnet", "10.20.1.0/24"), "external_ids": of},
			"22222222-2222-4222-8222-222222222222": {"name": "node1"}},
		"Logical_Router": {"33333333-3333-4333-8333-333333333333": {"name": "GR_blue_net.blue_node1", "external_ids": of}},
	})
	wd := holding(t, map[workdir.Kind]string{workdir.NB: nb.Close()})
	g, err := Logical(t.Context(), wd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Filter("blue/net-blue"); err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{}
	for _, box := range g.Boxes {
		notes[box.Name] = box.Note
	}
	if len(notes) != 2 || notes["blue_net.blue_node1"] != "10.20.1.0/24, network blue/net-blue" ||
		notes["GR_blue_net.blue_node1"] != "network blue/net-blue" {
		t.Errorf("%q", notes)
	}
}
