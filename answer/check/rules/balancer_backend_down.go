package rules

import (
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// balancerBackendDown finds VIPs with a health check that a backend, or all of them, do not answer. A
// backend that was not asked yet has no status.
func balancerBackendDown() rule.Rule {
	return rule.Rule{
		Name: "balancer-backend-down", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(balancers(rule.All("Load_Balancer_Health_Check", "_uuid", "vip"))...), rule.SB(rule.All("Service_Monitor", "ip", "protocol", "port", "status"))},
		Follows: "the other backends get the connections of this one",
		Sources: []string{"ovn-sb(5), Service_Monitor, status", "ovn-nb(5), Load_Balancer_Health_Check"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			status, err := monitors(d)
			if err != nil {
				return err
			}
			checks, err := healthChecks(d, n)
			if err != nil {
				return err
			}
			inUse := used(n)
			for _, c := range checks {
				if !inUse[c.balancer.UUID] {
					continue
				}
				var down []string
				backends := backendsOf(c.balancer.VIPs[c.vip])
				for _, backend := range backends {
					ip, port, _ := ovn.ParseVIP(backend)
					if s := status[monitor{ip.String(), c.balancer.Protocol, int(port)}]; s == "offline" || s == "error" {
						down = append(down, backend)
					}
				}
				if len(down) == 0 {
					continue
				}
				f := rule.Finding{What: fmt.Sprintf("%s: %d of %s down: %s", titleOf(d, c.balancer, c.vip), len(down), phrase.Count(len(backends), "backend"), phrase.FirstNames(down)),
					Evidence: []string{"Service_Monitor in the southbound database: status of " + strings.Join(down, ", ")}, Next: []rule.Next{rule.Ask("history", "sb", "--table", "Service_Monitor")}}
				if len(down) == len(backends) {
					f.Severity, f.Follows = rule.Error, "nothing serves the VIP"
				}
				found(f)
			}
			return nil
		}),
	}
}

// monitor identifies a backend that is probed.
type monitor struct {
	ip, protocol string
	port         int
}

// monitors returns what the probes of backends found.
func monitors(d *rule.Deployment) (map[monitor]string, error) {
	status := map[monitor]string{}
	return status, d.SB.Each("Service_Monitor", func(row ovsdb.Row) {
		port, _ := row.Int("port")
		ip, _ := ovn.ParseAddress(row.String("ip"))
		status[monitor{ip.String(), row.String("protocol"), port}] = row.String("status")
	}, "ip", "protocol", "port", "status")
}
