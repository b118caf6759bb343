package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// The external_ids in which CMSs write what a row stands for.
const (
	idOwnerController = "k8s.ovn.org/owner-controller"
	idRule            = "neutron:security_group_rule_id"
	idGroup           = "neutron:security_group_id"
)

func number(row ovsdb.Row, column string) int {
	n, _ := row.Int(column)
	return n
}

func named(what, name string) string {
	if name == "" {
		return ""
	}
	return what + " " + name
}

func groupOf(group portGroup) string { return named("ACL of "+KindPortGroup, group.name) }

// set names a port group or an address set by the object of Kubernetes that it is for: their own names are
// hashes.
func set(kind, name string, ids map[string]string) string {
	owner := ""
	switch ids[ovn.OwnerType] {
	case "":
		owner = setOfKubeOVN(name, ids)
	case "Namespace":
		owner = "namespace " + ids[ovn.OwnerName]
	case "Cluster":
		owner = "the cluster: " + ids[ovn.OwnerName]
	case "PodSelector": // NAMESPACE_SELECTOR
		namespace, selector, _ := strings.Cut(ids[ovn.OwnerName], "_")
		owner = "pods of namespace " + namespace + " with " + selector
	default:
		owner = ovn.Owner(ids)
	}
	if owner == "" {
		return kind + " " + ovn.Called(ids[ovn.NeutronRouter], name)
	}
	for _, detail := range []string{ids["direction"], named("rule", ids["gress-index"]), map[string]string{"v4": "IPv4", "v6": "IPv6"}[ids["ip-family"]]} {
		if detail != "" && !strings.HasSuffix(strings.ToLower(owner), strings.ToLower(detail)) {
			owner += ", " + detail
		}
	}
	if network, is := strings.CutSuffix(ids[idOwnerController], "-network-controller"); is && network != "default" {
		owner += ", of network " + ovn.UserDefinedNetwork(network)
	}
	return fmt.Sprintf("%s of %s (%s)", kind, owner, name)
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

// translation names a NAT rule; shared is set for a flow of several rules with its address.
func translation(row ovsdb.Row, shared bool) string {
	ids := row.Map("external_ids")
	external, logical := row.String("external_ip"), row.String("logical_ip")
	text := fmt.Sprintf("%s %s for %s", row.String("type"), external, logical)
	switch {
	case row.String("type") == "snat" && shared: // not only of the pod in the row
		text = "snat " + external
		if name := ids[ovn.OwnerName]; ids[ovn.OwnerType] == ovn.OwnerEgressIP {
			name, _, _ = strings.Cut(name, "_")
			return underOwner(ovn.OwnerEgressIP+" "+name, text)
		}
	case row.String("type") == "dnat_and_snat":
		text = fmt.Sprintf("floating ip %s for %s", external, logical)
	}
	return underOwner(cmp.Or(ovn.Owner(ids), egress(ids)), text)
}

// route names a static route; shared is set for a flow of several routes with its next hop.
func route(row ovsdb.Row, shared bool) string {
	text := fmt.Sprintf(KindRoute+" %s via %s", row.String("ip_prefix"), row.String("nexthop"))
	switch {
	case shared:
		return KindRoute + "s via " + row.String("nexthop")
	case row.String("policy") == "src-ip":
		text = fmt.Sprintf(KindRoute+" for source %s via %s", row.String("ip_prefix"), row.String("nexthop"))
	}
	return underOwner(ovn.Owner(row.Map("external_ids")), text)
}

// egress names the EgressIP or the EgressService that a row without an owner type is from, "" for none.
func egress(ids map[string]string) string {
	switch {
	case ids["name"] != "":
		return ovn.OwnerEgressIP + " " + ids["name"]
	case ids["EgressSVC"] != "":
		return "EgressService " + ids["EgressSVC"]
	}
	return ""
}

// underOwner returns the words of a row after the words of its owner, which may be "".
func underOwner(owner, text string) string {
	if owner == "" {
		return text
	}
	return owner + " (" + text + ")"
}

// policy names a policy route.
func policy(row ovsdb.Row) string {
	text := fmt.Sprintf(KindPolicyRoute+" priority %d: %s, %s", number(row, "priority"), row.String("match"), row.String("action"))
	isNone := func(hop string) bool { return hop == "" } // as kube-ovn writes it
	if hops := slices.DeleteFunc(slices.Concat(row.Strings("nexthops"), row.Strings("nexthop")), isNone); len(hops) > 0 {
		slices.Sort(hops)
		text += " to " + strings.Join(slices.Compact(hops), ", ")
	}
	ids := row.Map("external_ids")
	return underOwner(cmp.Or(ovn.Owner(ids), egress(ids), ownedByKubeOVN(ids)), text)
}

// loadBalancer names a load balancer, by its service if it has one.
func loadBalancer(row ovsdb.Row) string {
	return underOwner(ownerOfBalancer(row), KindLoadBalancer+" "+row.String("name"))
}

// ownerOfBalancer names the object that ovn-kubernetes made a load balancer from, "" for none.
func ownerOfBalancer(row ovsdb.Row) string {
	ids := row.Map("external_ids")
	if ids[ovn.ServiceKind] == "" || ids[ovn.ServiceOwner] == "" {
		return ""
	}
	return ids[ovn.ServiceKind] + " " + ids[ovn.ServiceOwner]
}

// describe names a southbound row other than a logical flow.
func (r *Rules) describe(table string, row ovsdb.Row, d ovn.Datapath) string {
	switch table {
	case "Port_Binding":
		return r.switchPort(KindPort, row.String("logical_port"), row)
	case "Multicast_Group":
		return fmt.Sprintf("multicast group %s of %s", row.String("name"), d)
	case "MAC_Binding", "Static_MAC_Binding":
		return fmt.Sprintf("MAC binding of %s on %s: %s", row.String("ip"), row.String("logical_port"), row.String("mac"))
	case "Load_Balancer":
		return r.balancer(table, row)
	case "Chassis":
		return "chassis " + ovn.Called(row.String("hostname"), row.String("name"))
	case "FDB":
		return fmt.Sprintf("learned MAC address %s of %s", row.String("mac"), d)
	case "Datapath_Binding":
		return d.String()
	}
	return ovsdb.TableWords(table) + " " + row.UUID
}
