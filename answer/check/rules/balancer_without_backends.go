package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
)

// balancerWithoutBackends finds VIPs without backends, and services of Kubernetes without endpoints. All are
// one finding. A service has load balancers of single nodes, which have no backends where a traffic policy
// is Local and the node has no endpoint: it counts if none of its VIPs has a backend in any zone. Load
// balancers that nothing uses do not count.
func balancerWithoutBackends() rule.Rule {
	return rule.Rule{
		Name: "balancer-without-backends", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(balancers()...)},
		Follows: "connections to them are rejected, or their packets are dropped",
		Sources: []string{"ovn-nb(5), Load_Balancer, vips and options:reject"},
		Case: func(_ context.Context, c *rule.Case, found func(rule.Finding)) error {
			idle := idleVIPs{}
			for _, d := range c.Deployments {
				if err := idle.add(d); err != nil {
					return err
				}
			}
			var names []string
			next := rule.Ask("history", "nb", "--table", "Load_Balancer", "--column", "vips")
			for _, name := range slices.Sorted(maps.Keys(idle)) {
				if vip := idle[name]; vip.cluster && !vip.served {
					names = append(names, name)
					next = historyOf(vip.balancer)
				}
			}
			if len(names) == 0 {
				return nil
			}
			what := names[0] + " has no backends"
			if len(names) > 1 {
				what = fmt.Sprintf("%s have no backends: %s", phrase.Count(len(names), "load balancer"), phrase.FirstNames(names))
				next = rule.Ask("history", "nb", "--table", "Load_Balancer", "--column", "vips")
			}
			found(rule.Finding{What: what, Evidence: []string{"Load_Balancer in the northbound database: vips"}, Next: []rule.Next{next}})
			return nil
		},
	}
}

// idleVIPs are the services, and the VIPs of other load balancers, by what users call them.
type idleVIPs map[string]idleVIP

type idleVIP struct {
	balancer string // the UUID of its row
	served   bool   // there is a backend
	cluster  bool   // it is not for a single node
}

// add adds the load balancers of a deployment.
func (v idleVIPs) add(d *rule.Deployment) error {
	n, err := d.Northbound()
	if err != nil || d.NB == nil {
		return err
	}
	inUse := used(n)
	for _, b := range n.Balancers {
		if !inUse[b.UUID] || b.Template {
			continue
		}
		for _, vip := range vipsOf(b) {
			served := len(backendsOf(b.VIPs[vip])) > 0
			if service := b.Service(); service != "" {
				name := "Service " + service
				known := v[name]
				v[name] = idleVIP{b.UUID, known.served || served, known.cluster || !strings.Contains(b.Name, "_node_")}
			} else if !served {
				v[titleOf(d, b, vip)] = idleVIP{b.UUID, false, true}
			}
		}
	}
	return nil
}
