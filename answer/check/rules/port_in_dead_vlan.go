package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// deadVLAN is DEAD_VLAN_TAG of neutron-openvswitch-agent, a number that no VLAN has.
const deadVLAN = "4095"

// portInDeadVLAN finds the ports that neutron-openvswitch-agent has in its dead VLAN: it puts a port there when it sees it, and takes it
// out when it has wired it. A port stays there that is switched off, that has no binding, or whose network the agent could not set up.
func portInDeadVLAN() rule.Rule {
	return rule.Rule{
		Name: "port-in-dead-vlan", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Either(rule.OVS(), rule.Printed("Port", "name", "tag"), rule.Output(workdir.RecordedSwitchShow))},
		Follows: "nothing that this port sends is forwarded: neutron-openvswitch-agent has not wired it, or has switched it off",
		Sources: []string{"DEAD_VLAN_TAG, port_dead and port_bound in ovs_neutron_agent.py of Neutron"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			look := func(port, tag, seen string) {
				if tag == deadVLAN {
					found(rule.Finding{What: fmt.Sprintf("port %s is in the dead VLAN (tag %s)", port, deadVLAN), Evidence: []string{seen},
						Next: []rule.Next{rule.Ask("timeline", "--program", "neutron-openvswitch-agent", "--all"), rule.Elsewhere("on a client of OpenStack", "openstack port show PORT   # binding_vif_type (binding_failed), status, admin_state_up")}})
				}
			}
			if n.OVS != nil {
				return n.OVS.Each("Port", func(row ovsdb.Row) {
					if tag, known := row.Int("tag"); known {
						look(row.String("name"), fmt.Sprint(tag), "Port "+row.String("name")+" in conf.db: tag")
					}
				}, "name", "tag")
			}
			printed, _, err := n.Printed("Port", "name", "tag")
			for _, row := range printed {
				look(row.Column("name"), row.Column("tag"), "ovs-vsctl list Port: tag")
			}
			if err != nil || len(printed) > 0 {
				return err
			}
			shown, err := n.Shown()
			if shown == nil || err != nil {
				return err
			}
			for _, port := range shown.Below("Port") {
				look(port.Name, port.Text("tag"), "ovs-vsctl show: tag of "+port.Name)
			}
			return nil
		},
	}
}
