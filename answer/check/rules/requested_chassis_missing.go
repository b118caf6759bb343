package rules

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// requestedChassisMissing finds ports that only a chassis may claim that does not exist: a port names
// another chassis, or the host has another name there, as with and without its domain. Bound ports do
// not count, nor do ports of machines that have no ovn-controller.
func requestedChassisMissing() rule.Rule {
	return rule.Rule{
		Name: "requested-chassis-missing", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(switches(), switchPorts()), rule.SB(chassis(), bindings())},
		Follows: "no node claims the port",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, options:requested-chassis"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			chassis, err := d.Chassis()
			if err != nil || len(chassis) == 0 {
				return err
			}
			bindings, err := d.Bindings()
			if err != nil {
				return err
			}
			exists := func(name string) bool {
				name = strings.TrimSpace(name)
				return slices.ContainsFunc(chassis, func(c ovn.Chassis) bool { return c.Name == name || c.Hostname == name })
			}
			ports := map[string][]*ovn.SwitchPort{} // by the chassis
			for _, s := range n.Switches {
				for _, p := range s.Ports {
					wanted := p.Options["requested-chassis"]
					b, ok := bindings[p.Name]
					if wanted == "" || p.Type != "" || p.Disabled || !ok || b.Chassis != "" || strings.HasPrefix(p.IDs["neutron:device_owner"], "baremetal") ||
						slices.ContainsFunc(strings.Split(wanted, ","), exists) {
						continue
					}
					ports[wanted] = append(ports[wanted], p)
				}
			}
			for wanted, waiting := range ports {
				var names []string
				for _, p := range waiting {
					names = append(names, p.Title())
				}
				slices.Sort(names)
				what := fmt.Sprintf("%s is for chassis %s, which does not exist", names[0], wanted)
				if len(names) > 1 {
					what = fmt.Sprintf("%d ports are for chassis %s, which does not exist: %s", len(names), wanted, phrase.FirstNames(names))
				}
				found(rule.Finding{What: what,
					Evidence: []string{inNB("Logical_Switch_Port", waiting[0].Name, "options:requested-chassis"), "Chassis in the southbound database: name, hostname"},
					Next:     []rule.Next{historyOf(waiting[0].UUID), rule.Ask("history", "sb", "--table", "Chassis")}})
			}
			return nil
		}),
	}
}
