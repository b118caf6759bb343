package rules

import (
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// balancerCheckWithoutProbe finds backends of VIPs with a health check that no port is named for, or one
// that does not exist: ovn-northd makes no probe for them.
func balancerCheckWithoutProbe() rule.Rule {
	return rule.Rule{
		Name: "balancer-check-without-probe", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(networkTables(balancers(rule.All("Load_Balancer_Health_Check", "_uuid", "vip"))...)...)},
		Follows: "nothing probes these backends, and they count as up",
		Sources: []string{"ovn-nb(5), Load_Balancer, ip_port_mappings", "ovn-nb(5), Load_Balancer_Health_Check"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			checks, err := healthChecks(d, n)
			if err != nil {
				return err
			}
			for _, c := range checks {
				var unprobed []string
				for _, backend := range backendsOf(c.balancer.VIPs[c.vip]) {
					if ip, _, ok := ovn.ParseVIP(backend); ok && !probed(n, c.balancer, ip.String()) {
						unprobed = append(unprobed, backend)
					}
				}
				if len(unprobed) > 0 {
					found(rule.Finding{What: fmt.Sprintf("%s has a health check that does not probe %s", titleOf(d, c.balancer, c.vip), phrase.FirstNames(unprobed)),
						Evidence: []string{inNB("Load_Balancer", c.balancer.Name, "ip_port_mappings, health_check")}, Next: []rule.Next{historyOf(c.balancer.UUID)}})
				}
			}
			return nil
		}),
	}
}

// probed reports whether a load balancer names a port for the address of a backend, PORT:ADDRESS, which
// exists. The port of another zone may have a third part.
func probed(n *ovn.Northbound, b *ovn.Balancer, ip string) bool {
	for key, value := range b.Mappings {
		if address, ok := ovn.ParseAddress(strings.Trim(key, "[]")); !ok || address.String() != ip {
			continue
		}
		port, _, _ := strings.Cut(value, ":")
		return port != "" && (n.Ports[port] != nil || !strings.Contains(value, "[") && strings.Count(value, ":") > 1)
	}
	return false
}
