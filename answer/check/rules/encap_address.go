package rules

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/iproute"
	"ovs-offline/workdir"
)

// encapAddress finds the addresses of tunnels that the node does not have.
func encapAddress() rule.Rule {
	return rule.Rule{
		Name: "tunnel-address-missing", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.Output(workdir.RecordedLinks)},
		Follows: "packets that other nodes send to this address do not arrive",
		Sources: []string{"ovn-controller(8), external_ids:ovn-encap-ip"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			settings, err := n.Settings()
			if err != nil {
				return err
			}
			text, err := n.Output(workdir.RecordedLinks)
			var own []netip.Addr
			for _, link := range iproute.Links(text) {
				own = append(own, link.Addresses...)
			}
			if len(own) == 0 || err != nil {
				return err
			}
			for _, address := range settings.Encaps() {
				if !slices.Contains(own, address) {
					found(rule.Finding{What: fmt.Sprintf("no interface of the node has its tunnel address %s", address),
						Evidence: []string{"Open_vSwitch in conf.db: external_ids:ovn-encap-ip", "ip address"},
						Next:     []rule.Next{rule.OnTheNode("ip address")}})
				}
			}
			return nil
		},
	}
}
