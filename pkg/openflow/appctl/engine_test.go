package appctl

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// TestEngineOfARealController reads what an ovn-controller prints.
func TestEngineOfARealController(t *testing.T) {
	central := ovs.StartCentral(t)
	central.Northd()
	s := ovs.Start(t)
	s.Join(central, "compute1")
	central.Nbctl("--wait=hv", "ls-add", "blue")
	s.Vsctl("add-port", "br-int", "tap0", "--", "set", "Interface", "tap0", "type=dummy", "external_ids:iface-id=web-1")
	central.Nbctl("--wait=hv", "lsp-add", "blue", "web-1", "--", "lsp-set-addresses", "web-1",
		"02:00:00:00:00:01 10.0.0.1")
	s.Appctl("-t", "ovn-controller", "inc-engine/recompute")
	central.Nbctl("--wait=hv", "sync")
	text := s.Appctl("-t", "ovn-controller", "inc-engine/show-stats")
	nodes, err := Engine(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	recomputes := 0
	for _, n := range nodes {
		recomputes += n.Recompute
	}
	if expect.Equal(t, len(nodes), strings.Count(text, "Node:"), "the nodes"); recomputes == 0 || len(nodes) == 0 {
		t.Errorf("%d nodes, %d recomputes:\n%s", len(nodes), recomputes, text)
	}
}
