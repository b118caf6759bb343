package rules

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Northbound names the rows of a northbound database in the words of their users. Without a
// database, it names none. Its methods may be called concurrently.
type Northbound struct {
	nb *file.Index // may be nil

	groups func() map[string]portGroup // by the UUIDs of their ACLs
	shares func() shares
	// gateway returns the services and networks that name the flows of br-ex.
	gateway func() gateway
	owners  func() map[string]Origin // of the bindings of ports: the rows of the ports, by their names
	kubeOVN func() kubeOVN
	acls    func() map[aclKey][]knownACL
}

func newNorthbound(nb *file.Index) *Northbound {
	n := &Northbound{nb: nb}
	n.groups = sync.OnceValue(n.readPortGroups)
	n.shares = sync.OnceValue(n.readShares)
	n.gateway = sync.OnceValue(n.readGateway)
	n.owners = sync.OnceValue(n.readOwners)
	n.kubeOVN = newKubeOVN(nb)
	n.acls = sync.OnceValue(n.readACLs)
	return n
}

// portGroup is a port group with ACLs.
type portGroup struct {
	name string
	ids  map[string]string
}

// readPortGroups returns the port groups by the UUIDs of their ACLs.
func (n *Northbound) readPortGroups() map[string]portGroup {
	groups := map[string]portGroup{}
	if n.nb == nil {
		return groups
	}
	for row, err := range n.nb.Rows("Port_Group", "name", "acls", "external_ids") {
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
func (n *Northbound) Name(table string, row ovsdb.Row) string {
	switch table {
	case "Logical_Switch", "Logical_Router":
		if name := n.network(table, row); name != "" {
			return name
		}
	}
	switch table {
	case "Logical_Switch":
		return Kind(table) + " " + ovn.Called(row.Value("external_ids", ovn.NeutronNetwork), row.String("name"))
	case "Logical_Router":
		return Kind(table) + " " + ovn.Called(row.Value("external_ids", ovn.NeutronRouter), row.String("name"))
	}
	return n.explain(table, row, Rule{}).Words
}

// explain describes a northbound row as the cause of a rule, in the words of its user.
func (n *Northbound) explain(table string, row ovsdb.Row, rule Rule) Cause {
	c := Cause{Table: table, UUID: row.UUID, Name: row.String("name")}
	if n.nb != nil && n.nb.Lacks(table, false, inWords(table)...) != "" {
		c.Words = Kind(table) + " " + cmp.Or(c.Name, n.inPart(table, row)) // of what the words would tell, something is not known
		return c
	}
	at := " of " + rule.Datapath.String()
	if rule.Datapath.Name == "" {
		at = ""
	}
	ids := row.Map("external_ids")
	switch table {
	case "ACL":
		c.Action, c.Words = row.String("action"), n.acl(row)
		c.Direction, c.Match, c.Group = row.String("direction"), row.String("match"), n.groups()[row.UUID].name
		c.Priority, _ = row.Int("priority")
	case "NAT":
		c.Shared = n.sharesAddress(row, rule)
		c.Words = cmp.Or(n.natOfKubeOVN(row, c.Shared), translation(row, c.Shared)) + at
	case "Load_Balancer":
		if c.Words = cmp.Or(n.balancerOfKubeOVN(row, rule), loadBalancer(row)); rule.Match != "" {
			shared := n.sharedVIP(row, rule)
			c.Words, c.Shared = cmp.Or(shared, c.Words), shared != ""
		}
	case "Logical_Router_Static_Route":
		c.Shared = n.sharesNextHop(row, rule)
		c.Words = route(row, c.Shared) + at
	case "Logical_Router_Policy":
		c.Action, c.Words = row.String("action"), policy(row)+at
	case "QoS":
		c.Words = fmt.Sprintf("%s (priority %d, %s)", cmp.Or(ovn.Owner(ids), Kind(table)), number(row, "priority"), row.String("match")) + at
	case "Logical_Switch_Port":
		c.Words = n.switchPort(Kind(table), c.Name, row)
	case "Port_Group", "Address_Set":
		c.Words = set(Kind(table), c.Name, ids)
	case "Logical_Router_Port":
		c.Words = underOwner(n.port(c.Name, ids), Kind(table)+" "+c.Name)
	case "DHCP_Options":
		c.Words = Kind(table) + " of " + cmp.Or(named("subnet", ids[idSwitch]), row.String("cidr"))
	case "Static_MAC_Binding":
		c.Words = fmt.Sprintf("%s of %s on %s", Kind(table), row.String("ip"), row.String("logical_port"))
	case "Logical_Switch", "Logical_Router":
		c.Words = cmp.Or(n.network(table, row), ovsdb.TableWords(table)+" "+ovn.Called(ids[ovn.NeutronRouter], c.Name))
	default:
		c.Words = ovsdb.TableWords(table) + " " + ovn.Called(ids[ovn.NeutronRouter], c.Name)
	}
	return c
}

// switchPort names a port of a switch by its row in either database.
func (n *Northbound) switchPort(kind, name string, row ovsdb.Row) string {
	ids, addresses := row.Map("external_ids"), append(row.Strings("addresses"), row.Strings("mac")...)
	if owner := cmp.Or(named("pod", ovn.PodName(name, row.String("type"), ids, addresses)), n.port(name, ids)); owner != "" {
		return underOwner(owner, kind+" "+name)
	}
	return kind + " " + ovn.Called(ovn.PortName(name, row.String("type"), ids, addresses), name)
}

// inPart names a row of which some columns are known: without its UUID, by what sets it apart for a reader.
func (n *Northbound) inPart(table string, row ovsdb.Row) string {
	if known, _ := n.nb.Known(table); !known.Unnamed {
		return row.UUID
	}
	if priority, ok := row.Int("priority"); ok {
		return strings.TrimSpace(fmt.Sprintf("%s with priority %d", row.String("direction"), priority))
	}
	return strings.Join(ovn.RowNames(table, row), " ")
}

// inWords returns the columns of a table that the words for its rows tell.
func inWords(table string) []string {
	switch table {
	case "ACL":
		return []string{"name", "action", "direction", "match", "priority", "external_ids"}
	case "NAT":
		return []string{"type", "external_ip", "logical_ip", "external_ids"}
	case "Load_Balancer":
		return []string{"name", "vips", "external_ids"}
	case "Logical_Router_Static_Route":
		return []string{"ip_prefix", "nexthop", "policy", "external_ids"}
	case "Logical_Router_Policy":
		return []string{"match", "action", "priority", "nexthops", "external_ids"}
	case "QoS":
		return []string{"match", "priority", "external_ids"}
	case "DHCP_Options":
		return []string{"cidr", "external_ids"}
	case "Static_MAC_Binding":
		return []string{"ip", "logical_port"}
	}
	return nil
}

// acl names an ACL by its policy or its security group, or else by its own name.
func (n *Northbound) acl(row ovsdb.Row) string {
	group := n.groups()[row.UUID]
	ids := row.Map("external_ids")
	name := cmp.Or(ovn.Owner(ids), securityGroup(ids, group), n.kubeOVNACL(row, group), named("ACL", row.String("name")), groupOf(group), "ACL")
	details := fmt.Sprintf("ACL priority %d, %s", number(row, "priority"), row.String("action"))
	if strings.HasPrefix(name, "ACL") {
		details = strings.TrimPrefix(details, "ACL ")
	}
	if tier := number(row, "tier"); tier > 0 {
		details += fmt.Sprintf(", tier %d", tier)
	}
	return fmt.Sprintf("%s (%s)", name, details)
}

// balancer names a southbound load balancer by its northbound row, in the table of the same name. Its UUID is in lb_id, or
// OVN 26.03 gave both rows the same one.
func (n *Northbound) balancer(table string, row ovsdb.Row) string {
	if n.nb != nil {
		if nb, ok, err := n.nb.Row(table, cmp.Or(row.Map("external_ids")["lb_id"], row.UUID)); ok && err == nil {
			return cmp.Or(n.balancerOfKubeOVN(nb, Rule{}), loadBalancer(nb))
		}
	}
	return loadBalancer(row)
}

// readOwners returns the rows of the ports of switches and routers by their names.
func (n *Northbound) readOwners() map[string]Origin {
	ports := map[string]Origin{}
	for _, table := range []string{"Logical_Switch_Port", "Logical_Router_Port"} {
		for row, err := range n.nb.Rows(table, "name") {
			if err != nil {
				break // the ports that can't be read keep their southbound rows
			}
			ports[row.String("name")] = Origin{Table: table, UUID: row.UUID}
		}
	}
	return ports
}

// MatchOf returns the direction and the match of an ACL, which tell it from others with the same
// words; "" if there is no such row.
func (n *Northbound) MatchOf(acl string) (string, error) {
	if n.nb == nil {
		return "", nil
	}
	row, ok, err := n.nb.Row("ACL", acl, "direction", "match")
	if err != nil || !ok {
		return "", err
	}
	return row.String("direction") + ", " + row.String("match"), nil
}

// DescribeNorthbound describes a northbound row in the words of its user, "" if there is no such
// row.
func (n *Northbound) DescribeNorthbound(table, uuid string) (string, error) {
	if n.nb == nil {
		return "", nil
	}
	row, ok, err := n.nb.Row(table, uuid)
	if err != nil || !ok {
		return "", err
	}
	return n.explain(table, row, Rule{}).Words, nil
}

// cause returns the northbound row whose UUID begins with the stage hint of a logical flow.
func (n *Northbound) cause(hint string, rule Rule) (Cause, error) {
	bits, err := strconv.ParseUint(hint, 16, 32)
	if hint == "" || err != nil || n.nb == nil {
		return Cause{}, nil
	}
	var found []Cause
	for _, table := range hintTables(rule.Stage) {
		for _, uuid := range n.nb.Begins(table, uint32(bits)) {
			row, ok, err := n.nb.Row(table, uuid)
			if err != nil {
				return Cause{}, err
			}
			if ok {
				found = append(found, n.explain(table, row, rule))
			}
		}
	}
	if len(found) == 0 && n.nb.Lacks("ACL", true, "direction", "priority", "match") == "" {
		return n.replaced(rule)
	}
	if len(found) == 0 {
		return Cause{}, nil // the row of the hint may be one that is not known
	}
	return found[0], nil
}
