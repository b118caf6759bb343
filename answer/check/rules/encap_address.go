package rules

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/iproute"
	"ovs-offline/internal/ovn"
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

// encapDiffers finds the nodes whose tunnel address is another one in the southbound database, from which the other nodes make their tunnels.
func encapDiffers() rule.Rule {
	return rule.Rule{
		Name: "tunnel-address-differs", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), encaps())},
		Follows: "other nodes send to the address of the southbound database: ovn-controller has not written the one that is set",
		Sources: []string{"ovn-controller(8), external_ids:ovn-encap-ip", "ovn-sb(5), Encap, ip"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			settings, err := n.Settings()
			if err != nil {
				return err
			}
			own, isChassis, err := n.ChassisOf()
			if err != nil || !isChassis || len(own.Encaps) == 0 {
				return err
			}
			for _, address := range settings.Encaps() {
				if !slices.ContainsFunc(own.Encaps, func(e ovn.Encap) bool { return e.IP == address.String() }) {
					found(rule.Finding{What: fmt.Sprintf("the tunnel address %s of the node is not in the southbound database, which has %s for its chassis", address, addressesOf(own)),
						Evidence: []string{"Open_vSwitch in conf.db: external_ids:ovn-encap-ip", "Chassis and Encap in the southbound database"},
						Next:     []rule.Next{rule.Ask("timeline", "--program", "ovn-controller"), rule.OnTheNode("ovn-appctl -t ovn-controller connection-status")}})
				}
			}
			return nil
		},
	}
}
