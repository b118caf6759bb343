package rules

import (
	"net/netip"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// nat is a row of the table NAT, with the router that has it.
type nat struct {
	router            *ovn.Router
	uuid, kind        string
	external          netip.Addr // invalid for a range or another text
	logical           string
	externalMAC, port string
	conditional       bool // it is for some packets only: a match, a range of ports, or addresses of peers
}

// natOf returns the NAT rules of all routers.
func natOf(d *rule.Deployment, n *ovn.Northbound) ([]nat, error) {
	rows := map[string]nat{}
	if err := d.NB.Each("NAT", func(row ovsdb.Row) {
		t := nat{uuid: row.UUID, kind: row.String("type"), logical: row.String("logical_ip"), externalMAC: row.String("external_mac"), port: row.String("logical_port")}
		t.external, _ = ovn.ParseAddress(row.String("external_ip"))
		t.conditional = row.String("match") != "" || row.String("external_port_range") != "" || len(row.UUIDs("allowed_ext_ips"))+len(row.UUIDs("exempted_ext_ips")) > 0
		rows[row.UUID] = t
	}, "type", "external_ip", "logical_ip", "external_mac", "logical_port", "match", "external_port_range", "allowed_ext_ips", "exempted_ext_ips"); err != nil {
		return nil, err
	}
	var all []nat
	for _, r := range n.Routers {
		for _, uuid := range r.NAT {
			if t, ok := rows[uuid]; ok {
				t.router = r
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// title returns what users call the rule.
func (t nat) title(d *rule.Deployment) string { return d.Title("NAT", t.uuid) }

// incoming reports whether the router answers for the external address, and sends packets to it on.
func (t nat) incoming() bool { return t.kind == "dnat" || t.kind == "dnat_and_snat" }

// networkTables returns the switch in whose network the external address is, nil for none.
func (t nat) networkTables() *ovn.Switch {
	if !t.external.IsValid() {
		return nil
	}
	if end := t.router.Reaches(t.external); end != nil {
		return end.Switch()
	}
	return nil
}
