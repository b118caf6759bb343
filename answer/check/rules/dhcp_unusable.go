package rules

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// dhcpUnusable finds ports with DHCP options of which ovn-northd makes no logical flows: an option that it
// needs is missing, or the port has no address in their network.
func dhcpUnusable() rule.Rule {
	return rule.Rule{
		Name: "dhcp-unusable", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(switches(), switchPorts(), rule.All("Logical_Switch_Port", "dhcpv4_options"), rule.All("DHCP_Options", "_uuid", "cidr", "options", "external_ids"))},
		Follows: "OVN does not answer the DHCP requests of the port",
		Sources: []string{"northd/northd.c of OVN: Required DHCPv4 options not defined", "ovn-nb(5), DHCP_Options"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			rows := map[string]ovsdb.Row{}
			if err := d.NB.Each("DHCP_Options", func(row ovsdb.Row) { rows[row.UUID] = row }, "cidr", "options", "external_ids"); err != nil {
				return err
			}
			affected := map[string][]string{}
			for _, s := range n.Switches {
				for _, p := range s.Ports {
					if row, ok := rows[p.DHCP]; ok && !p.Disabled && problemOfDHCP(row, p) != "" {
						key := problemOfDHCP(row, p) + "\x00" + row.UUID
						affected[key] = append(affected[key], p.Title())
					}
				}
			}
			for key, ports := range affected {
				why, uuid, _ := strings.Cut(key, "\x00")
				slices.Sort(ports)
				found(rule.Finding{What: fmt.Sprintf("%s of %s: %s", d.Title("DHCP_Options", uuid), phrase.FirstNames(ports), why),
					Evidence: []string{inNB("DHCP_Options", uuid, "cidr, options")}, Next: []rule.Next{historyOf(uuid)}})
			}
			return nil
		}),
	}
}

// problemOfDHCP says why a port gets no answers with DHCP options, "" if it gets some.
func problemOfDHCP(row ovsdb.Row, p *ovn.SwitchPort) string {
	network, options := ovn.Prefix(row.String("cidr")), row.Map("options")
	_, ips := ovn.ParseAddresses(strings.Join(p.Assigned(), " "))
	has, inside := false, false
	for _, ip := range ips {
		has, inside = has || ip.Is4(), inside || network.Contains(ip)
	}
	if !network.IsValid() || !network.Addr().Is4() || !has || len(options) == 0 {
		return "" // a CMS writes none to turn DHCP off
	}
	for _, name := range []string{"server_id", "server_mac", "lease_time"} {
		if options[name] == "" {
			return "they lack " + name
		}
	}
	if !inside {
		return "the port has no address in " + network.String()
	}
	return ""
}
