package trace

import (
	"cmp"
	"net/netip"
	"sync"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/rules"
)

// zone is a deployment, or a zone of OVN interconnection, with what answers read of it.
type zone struct {
	*snapshot.Deployment
	rules *rules.Rules // nil without SB
	// encaps returns the chassis by their tunnel addresses.
	encaps func() map[netip.Addr][]follow.Chassis
}

func newZone(deployment *snapshot.Deployment) *zone {
	made := &zone{Deployment: deployment}
	made.encaps = sync.OnceValue(made.readEncaps)
	if deployment.SB != nil {
		made.rules = rules.New(deployment.Named().NB, deployment.SB)
	}
	return made
}

// chassisOf returns the chassis with a tunnel address in the southbound database of a node.
func (s *Session) chassisOf(node string, address netip.Addr) []follow.Chassis {
	return s.nodes[node].zone.encaps()[address]
}

// readEncaps returns the chassis by their tunnel addresses.
func (z *zone) readEncaps() map[netip.Addr][]follow.Chassis {
	found := map[netip.Addr][]follow.Chassis{}
	if z.SB == nil {
		return found
	}
	hostnames := map[string]string{}
	chassis, _ := ovn.ReadChassis(z.SB) // a chassis that can't be read is called by its name
	for _, c := range chassis {
		hostnames[c.Name] = c.Hostname
	}
	for row, err := range z.SB.Rows("Encap", "ip", "chassis_name") {
		if err != nil {
			break // their nodes count as not known
		}
		if ip, err := netip.ParseAddr(row.String("ip")); err == nil {
			name := row.String("chassis_name")
			found[ip] = append(found[ip], follow.Chassis{Name: name, Hostname: cmp.Or(hostnames[name], name)})
		}
	}
	return found
}
