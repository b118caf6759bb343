package names

import (
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// providing matches the flow by which neutron's agent gives packets from a provider bridge the VLAN that a network has
// on the integration bridge: those with the VLAN of a segment, or those without one.
var providing = lazyregexp.New(`in_port=(\d+),(?:dl_vlan=(\d+)|vlan_tci=0x0000/0x1fff) actions=.*?(?:mod_vlan_vid:(\d+)|set_field:(\d+)->vlan_vid)`)

// vlanPresent is the bit that set_field:VALUE->vlan_vid has beside the number of the VLAN (ovs-fields(7), vlan_vid).
const vlanPresent = 0x1000

// readProviders finds the provider bridges by which networks of neutron's agent leave a node: port int-BRIDGE of the
// integration bridge leads to each. The agent records no mapping of physical networks to bridges, so the network has
// the name of the bridge, as answers have it.
func (l *loader) readProviders(of snapshot.Member, integration string) error {
	bridges, err := node.Bridges(of.OVS)
	if err != nil {
		return err
	}
	providers, networks := map[string]string{}, map[int]*logicalSwitch{} // by OpenFlow port and by VLAN
	for _, bridge := range bridges {
		for _, port := range bridge.Ports {
			if ls := l.zone.switches[port.Config["net_uuid"]]; ls != nil && bridge.Name == integration {
				networks[port.Tag] = ls
			}
			for _, iface := range port.Interfaces {
				if name, ok := strings.CutPrefix(iface.Name, "int-"); ok && bridge.Name == integration {
					providers[strconv.Itoa(iface.Number)] = name
				}
			}
		}
	}
	dump, err := os.Open(of.Dir.DumpFile(integration, workdir.Flows))
	if err != nil {
		return nil // the networks keep the names of physical networks
	}
	defer dump.Close()
	for flow, problem := range openflow.FlowsIn(dump, func(line string) bool { return strings.Contains(line, "vlan") }) {
		found := providing.FindStringSubmatch(flow.Text)
		if problem != nil || found == nil || providers[found[1]] == "" {
			continue
		}
		outer, _ := strconv.Atoi(found[2])
		local, _ := strconv.Atoi(found[3] + found[4])
		if ls := networks[local&^vlanPresent]; ls != nil {
			network := "bridge " + providers[found[1]]
			ls.localnet = []localnet{{network, outer}}
			l.zone.networks[network] = append(l.zone.networks[network], of.Name)
		}
	}
	return nil
}
