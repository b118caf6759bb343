package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// The external_ids in which CMSs write what a row stands for.
const (
	idOwnerType  = "k8s.ovn.org/owner-type"
	idOwnerName  = "k8s.ovn.org/name"
	idKind       = "k8s.ovn.org/kind"
	idOwner      = "k8s.ovn.org/owner"
	idRule       = "neutron:security_group_rule_id"
	idGroup      = "neutron:security_group_id"
	idRouterName = "neutron:router_name"
	idPortName   = "neutron:port_name"
	idPolicy     = "np" // kube-ovn, of a port group
)

// portGroup is a port group with ACLs.
type portGroup struct {
	name string
	ids  map[string]string
}

// Holds reports whether a port group holds a logical port.
func (r *Rules) Holds(group, port string) bool {
	return r.members()[group][port]
}

// readMembers returns the names of the ports that each port group of the southbound database
// holds.
func (r *Rules) readMembers() map[string]map[string]bool {
	members := map[string]map[string]bool{}
	for row, err := range r.sb.Rows("Port_Group", "name", "ports") {
		if err != nil {
			break // groups that can't be read hold no ports
		}
		// The name is KEY_NAME, with the tunnel key of the datapath (northd/northd.c).
		_, name, _ := strings.Cut(row.String("name"), "_")
		if members[name] == nil {
			members[name] = map[string]bool{}
		}
		for _, port := range row.Strings("ports") {
			members[name][port] = true
		}
	}
	return members
}

// readPortGroups returns the port groups by the UUIDs of their ACLs.
func (r *Rules) readPortGroups() map[string]portGroup {
	groups := map[string]portGroup{}
	if r.nb == nil {
		return groups
	}
	for row, err := range r.nb.Rows("Port_Group", "name", "acls", "external_ids") {
		if err != nil {
			break // the ACLs of groups that can't be read keep their own names
		}
		g := portGroup{row.String("name"), row.Map("external_ids")}
		for _, acl := range row.UUIDs("acls") {
			groups[acl] = g
		}
	}
	return groups
}

// Name names a northbound row as its user knows it.
func (r *Rules) Name(table string, row ovsdb.Row) string { return r.explain(table, row, Rule{}).Words }

// explain returns the cause that a northbound row is, in the words of its user.
func (r *Rules) explain(table string, row ovsdb.Row, rule Rule) Cause {
	c := Cause{Table: table, UUID: row.UUID, Name: row.String("name")}
	at := " of " + rule.Datapath.String()
	if rule.Datapath.Name == "" {
		at = ""
	}
	ids := row.Map("external_ids")
	switch table {
	case "ACL":
		c.Action, c.Words = row.String("action"), r.acl(row)
		c.Direction, c.Match, c.Group = row.String("direction"), row.String("match"), r.groups()[row.UUID].name
	case "NAT":
		c.Words = translation(row, r.sharesAddress(row, rule)) + at
	case "Load_Balancer":
		c.Words = loadBalancer(row)
	case "Logical_Router_Static_Route":
		c.Words = route(row) + at
	case "Logical_Router_Policy":
		c.Action, c.Words = row.String("action"), policy(row)+at
	case "QoS":
		c.Words = fmt.Sprintf("%s (priority %d, %s)", cmp.Or(owned(ids), "QoS rule"), number(row, "priority"), row.String("match")) + at
	case "Logical_Switch_Port":
		c.Words = "port " + called(ids[idPortName], c.Name)
	case "Logical_Router_Port":
		c.Words = "router port " + c.Name
	case "DHCP_Options":
		c.Words = "DHCP options of " + row.String("cidr")
	case "Static_MAC_Binding":
		c.Words = fmt.Sprintf("static MAC binding of %s on %s", row.String("ip"), row.String("logical_port"))
	default:
		c.Words = strings.ToLower(strings.ReplaceAll(table, "_", " ")) + " " + called(ids[idRouterName], c.Name)
	}
	return c
}

// called returns the name that a user gave, with the name in OVN, or only the latter.
func called(given, name string) string {
	if given == "" || given == name {
		return name
	}
	return given + " (" + name + ")"
}

func number(row ovsdb.Row, column string) int {
	n, _ := row.Int(column)
	return n
}

// acl names an ACL by the policy or the security group that it belongs to, or else by its
// own name.
func (r *Rules) acl(row ovsdb.Row) string {
	group := r.groups()[row.UUID]
	ids := row.Map("external_ids")
	name := cmp.Or(owned(ids), securityGroup(ids, group), kubeOVN(group), named("ACL", row.String("name")), groupOf(group), "ACL")
	details := fmt.Sprintf("ACL priority %d, %s", number(row, "priority"), row.String("action"))
	if strings.HasPrefix(name, "ACL") {
		details = strings.TrimPrefix(details, "ACL ")
	}
	if tier := number(row, "tier"); tier > 0 {
		details += fmt.Sprintf(", tier %d", tier)
	}
	return fmt.Sprintf("%s (%s)", name, details)
}

func named(what, name string) string {
	if name == "" {
		return ""
	}
	return what + " " + name
}

func groupOf(group portGroup) string { return named("ACL of port group", group.name) }

// owned names the object of Kubernetes that ovn-kubernetes made a row from ("" for none), by
// the owner types of its libovsdb/ops/db_object_types.go.
func owned(ids map[string]string) string {
	name, direction := ids[idOwnerName], strings.ToLower(ids["direction"])
	if direction == "" {
		direction = strings.ToLower(ids["policy-direction"])
	}
	switch kind := ids[idOwnerType]; kind {
	case "":
		return ownedBefore(ids)
	case "NetworkPolicy": // NAMESPACE:NAME
		return "NetworkPolicy " + strings.Replace(name, ":", "/", 1)
	case "NetpolNamespace", "NetpolDefault":
		return strings.TrimSpace(fmt.Sprintf("NetworkPolicies of namespace %s: default deny %s", name, direction))
	case "NetpolNode":
		return "NetworkPolicies: traffic from node " + name
	case "EgressFirewall":
		return "EgressFirewall of namespace " + name
	case "MulticastNS":
		return "multicast of namespace " + name
	case "MulticastCluster":
		return "multicast of the cluster"
	case "EgressIP", "EgressService", "EgressQoS", "NetworkQoS", "AdminNetworkPolicy", "BaselineAdminNetworkPolicy":
		return kind + " " + strings.Replace(name, ":", "/", 1)
	default:
		return strings.TrimSpace(kind + " " + strings.Replace(name, ":", "/", 1))
	}
}

// ownedBefore names the object of Kubernetes by the external_ids that ovn-kubernetes wrote
// before it had owner types.
func ownedBefore(ids map[string]string) string {
	if ids["policy"] != "" && ids["namespace"] != "" {
		return "NetworkPolicy " + ids["namespace"] + "/" + ids["policy"]
	}
	if ids["egressFirewall"] != "" {
		return "EgressFirewall of namespace " + ids["egressFirewall"]
	}
	return ""
}

// securityGroup names the rule of a security group of neutron, "" for none.
func securityGroup(ids map[string]string, group portGroup) string {
	rule, of := ids[idRule], group.ids[idGroup]
	if of == "" {
		if id, found := strings.CutPrefix(group.name, "pg_"); found && strings.Count(id, "_") == 4 {
			of = strings.ReplaceAll(id, "_", "-")
		}
	}
	switch {
	case group.name == "neutron_pg_drop":
		return "security groups: default drop (port group neutron_pg_drop)"
	case rule != "" && of != "":
		return "security group " + of + ", rule " + rule
	case rule != "":
		return "security group rule " + rule
	case of != "":
		return "security group " + of
	}
	return ""
}

// kubeOVN names the NetworkPolicy that kube-ovn made a port group from, "" for none.
func kubeOVN(group portGroup) string { return named("NetworkPolicy", group.ids[idPolicy]) }

// sharesAddress reports whether a flow is also that of other NAT rules: it matches only the
// external address, and several rules translate into this one.
func (r *Rules) sharesAddress(row ovsdb.Row, rule Rule) bool {
	return rule.Match != "" && !strings.Contains(rule.Match, row.String("logical_ip")) && r.snats()[row.String("external_ip")] > 1
}

// readSNATs returns the number of rules that translate sources into an external address.
func (r *Rules) readSNATs() map[string]int {
	count := map[string]int{}
	for row, err := range r.nb.Rows("NAT", "type", "external_ip") {
		if err != nil {
			break // the rules that can't be read keep their own words
		}
		if row.String("type") == "snat" {
			count[row.String("external_ip")]++
		}
	}
	return count
}

// translation names a NAT rule; shared is set for a flow of several rules with its address.
func translation(row ovsdb.Row, shared bool) string {
	ids := row.Map("external_ids")
	external, logical := row.String("external_ip"), row.String("logical_ip")
	text := fmt.Sprintf("%s %s for %s", row.String("type"), external, logical)
	switch {
	case row.String("type") == "snat" && shared:
		text = "snat " + external
	case row.String("type") == "dnat_and_snat":
		text = fmt.Sprintf("floating ip %s for %s", external, logical)
	}
	owner := owned(ids)
	if owner == "" && ids["name"] != "" {
		owner = "EgressIP " + ids["name"]
	}
	if owner != "" {
		text = owner + " (" + text + ")"
	}
	return text
}

// route names a static route.
func route(row ovsdb.Row) string {
	text := fmt.Sprintf("route %s via %s", row.String("ip_prefix"), row.String("nexthop"))
	if row.String("policy") == "src-ip" {
		text = fmt.Sprintf("route for source %s via %s", row.String("ip_prefix"), row.String("nexthop"))
	}
	if owner := owned(row.Map("external_ids")); owner != "" {
		text = owner + " (" + text + ")"
	}
	return text
}

// policy names a policy route.
func policy(row ovsdb.Row) string {
	text := fmt.Sprintf("policy route priority %d: %s, %s", number(row, "priority"), row.String("match"), row.String("action"))
	if hops := slices.Concat(row.Strings("nexthops"), row.Strings("nexthop")); len(hops) > 0 {
		slices.Sort(hops)
		text += " to " + strings.Join(slices.Compact(hops), ", ")
	}
	ids := row.Map("external_ids")
	owner := owned(ids)
	if owner == "" && ids["name"] != "" {
		owner = "EgressIP " + ids["name"]
	}
	if owner != "" {
		text = owner + " (" + text + ")"
	}
	return text
}

// loadBalancer names a load balancer, by its service if it has one.
func loadBalancer(row ovsdb.Row) string {
	ids := row.Map("external_ids")
	text := "load balancer " + row.String("name")
	if ids[idKind] != "" && ids[idOwner] != "" {
		return fmt.Sprintf("%s %s (%s)", ids[idKind], ids[idOwner], text)
	}
	return text
}

// describe names a southbound row other than a logical flow.
func (r *Rules) describe(table string, row ovsdb.Row, d Datapath) string {
	ids := row.Map("external_ids")
	switch table {
	case "Port_Binding":
		return "port " + called(ids[idPortName], row.String("logical_port"))
	case "Multicast_Group":
		return fmt.Sprintf("multicast group %s of %s", row.String("name"), d)
	case "MAC_Binding", "Static_MAC_Binding":
		return fmt.Sprintf("MAC binding of %s on %s: %s", row.String("ip"), row.String("logical_port"), row.String("mac"))
	case "Load_Balancer":
		return r.balancer(row)
	case "Chassis":
		return "chassis " + called(row.String("hostname"), row.String("name"))
	case "FDB":
		return fmt.Sprintf("learned MAC address %s of %s", row.String("mac"), d)
	case "Datapath_Binding":
		return d.String()
	}
	return strings.ToLower(strings.ReplaceAll(table, "_", " ")) + " " + row.UUID
}

// balancer names a southbound load balancer by its northbound row, which has its UUID in
// lb_id.
func (r *Rules) balancer(row ovsdb.Row) string {
	if r.nb != nil {
		if nb, ok, err := r.nb.Row("Load_Balancer", row.Map("external_ids")["lb_id"]); ok && err == nil {
			return loadBalancer(nb)
		}
	}
	return loadBalancer(row)
}
