package reach

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/snapshot/names"
)

// Group is a row or a column: endpoints that behave alike, a service, or an address outside.
type Group struct {
	Name string `json:"name"`
	// Part is the namespace, the port groups or the network of the members.
	Part    string   `json:"part,omitempty"`
	Members []string `json:"members"`
	// Asked are the members that stand for the group, one of each node.
	Asked []string `json:"asked"`

	members   []member
	only      *Port  // the port of a service
	absent    bool   // the nodes of the members are not in the set, so they can't be asked
	secondary string // the secondary network of the members, "" for another one
	outside   bool   // an address outside
}

// member is an endpoint of a group.
type member struct {
	name  string
	node  string
	names []string // that Ask takes, by session
}

// groups returns the endpoints that all views have, in groups that behave alike in each of
// them, and sentences about those that are left out.
func groups(views []*view, by By) (found []Group, remarks []string) {
	type class struct{ part, key string }
	at := map[class]int{}
	last := views[len(views)-1]
	var unaddressed, single []string
	for _, name := range last.order {
		member := member{name: name, node: last.endpoints[name].Node}
		var c class
		addressed, known := true, true
		for _, view := range views {
			endpoint, ok := view.endpoints[name]
			known = known && ok
			addressed = addressed && len(endpoint.IPs) > 0
			member.names = append(member.names, endpoint.LogicalPort)
			c.key += view.alike(endpoint) + "\n"
		}
		switch {
		case !known:
			single = append(single, name)
			continue
		case !addressed:
			unaddressed = append(unaddressed, name)
			continue
		}
		c.part = last.partOf(last.endpoints[name], by)
		if by == ByPort {
			c.key = name
		}
		i, exists := at[c]
		if !exists {
			i = len(found)
			at[c] = i
			endpoint := last.endpoints[name]
			group := Group{Part: c.part, absent: endpoint.Node == "" && endpoint.Chassis != ""}
			if endpoint.IsSecondary() {
				group.secondary = endpoint.Network
			}
			found = append(found, group)
		}
		found[i].members = append(found[i].members, member)
	}
	for _, name := range views[0].order {
		if _, ok := last.endpoints[name]; !ok {
			single = append(single, name)
		}
	}
	label(found)
	return found, append(remark("have no known addresses and are left out", unaddressed), remark("are only in one of the two", single)...)
}

// onNodes returns the groups with only their members on some nodes; all members without
// nodes.
func onNodes(all []Group, nodes []string) (found []Group) {
	for _, group := range all {
		group.members = slices.DeleteFunc(slices.Clone(group.members), func(m member) bool { return len(nodes) > 0 && !slices.Contains(nodes, m.node) })
		if len(group.members) > 0 {
			found = append(found, group)
		}
	}
	return found
}

// senders returns the groups whose nodes are in the set, and a sentence about the others.
func senders(all []Group) (found []Group, remarks []string) {
	var absent []string
	for _, group := range all {
		if group.absent {
			absent = append(absent, group.memberNames()...)
		} else {
			found = append(found, group)
		}
	}
	return found, remark("are on nodes that were not collected, so they are asked as destinations only", absent)
}

// remark returns a sentence about endpoints, nil if there are none.
func remark(what string, names []string) []string {
	const maxNames = 5
	if len(names) == 0 {
		return nil
	}
	text := strings.Join(names[:min(maxNames, len(names))], ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{"these endpoints " + what + ": " + text}
}

// label names groups by their parts, or by their first members where a part has several
// groups, and sorts them.
func label(all []Group) {
	parts := map[string]int{}
	for _, group := range all {
		parts[group.Part]++
	}
	taken := map[string]bool{}
	for i := range all {
		group := &all[i]
		slices.SortFunc(group.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		first := group.members[0].name
		switch {
		case parts[group.Part] == 1:
			group.Name = group.Part
		case strings.HasPrefix(first, group.Part+"/"):
			group.Name = first
		default:
			group.Name = group.Part + ": " + first
		}
		if more := len(group.members) - 1; more > 0 && parts[group.Part] > 1 {
			group.Name += fmt.Sprintf(" +%d", more)
		}
		for n, name := 2, group.Name; taken[group.Name]; n++ {
			group.Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[group.Name] = true
	}
	slices.SortFunc(all, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

// services returns a group for each VIP that all views have.
func services(views []*view) []Group {
	var found []Group
	count := map[string]int{}
	for _, endpoint := range views[len(views)-1].services {
		if !slices.ContainsFunc(views, func(view *view) bool { return !view.hasService(endpoint) }) {
			count[endpoint.Name]++
			group := groupOfOne(endpoint.Name, vip(endpoint), len(views))
			if endpoint.Port != 0 {
				group.only = &Port{endpoint.Protocol, endpoint.Port}
			}
			found = append(found, group)
		}
	}
	for i := range found {
		if group := &found[i]; count[group.Name] > 1 { // a service with several VIPs
			group.Name += " (" + group.members[0].names[0] + ")"
		}
	}
	slices.SortFunc(found, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// vip returns the VIP of a service as Ask takes it.
func vip(endpoint names.Endpoint) string {
	if endpoint.Port == 0 {
		return endpoint.IPs[0].String()
	}
	return netip.AddrPortFrom(endpoint.IPs[0], endpoint.Port).String()
}

// external returns a group for each address outside.
func external(addresses []string, views int) ([]Group, error) {
	var found []Group
	for _, text := range addresses {
		ip, err := netip.ParseAddr(strings.TrimPrefix(text, "external/"))
		if err != nil {
			return nil, fmt.Errorf("address outside: %w", err)
		}
		name := "external/" + ip.String()
		group := groupOfOne(name, name, views)
		group.outside = true
		found = append(found, group)
	}
	return found, nil
}

// groupOfOne returns a group of one member that is on no node.
func groupOfOne(name, asked string, views int) Group {
	return Group{Name: name, members: []member{{name: name, names: slices.Repeat([]string{asked}, views)}}}
}

// chosen returns the groups that a pattern matches, with the members that one matches if
// the name of the group does not match. Without patterns, it returns all.
func chosen(all []Group, patterns []string) ([]Group, error) {
	if len(patterns) == 0 {
		return slices.Clone(all), nil
	}
	used := map[string]bool{}
	matches := func(texts ...string) (found bool) {
		for _, pattern := range patterns {
			for _, text := range texts {
				if names.Matches(pattern, text) {
					found, used[pattern] = true, true
				}
			}
		}
		return found
	}
	var found []Group
	for _, group := range all {
		if !matches(group.Name, group.Part) {
			group.members = slices.DeleteFunc(slices.Clone(group.members), func(m member) bool { return !matches(append(slices.Clone(m.names), m.name)...) })
		}
		if len(group.members) > 0 {
			found = append(found, group)
		}
	}
	for _, pattern := range patterns {
		if !used[pattern] {
			return nil, &UnknownError{pattern}
		}
	}
	return found, nil
}

func (g *Group) memberNames() []string {
	var found []string
	for _, member := range g.members {
		found = append(found, member.name)
	}
	return found
}

// describe sets what a group shows of its members.
func (g *Group) describe(each bool) {
	g.Members, g.Asked = g.memberNames(), nil
	asked := g.members
	if !each {
		asked = g.firstOfEachNode()
	}
	for _, member := range asked {
		g.Asked = append(g.Asked, member.name)
	}
}

// portsOf returns the ports that a group is asked with.
func (g *Group) portsOf(all []Port) []Port {
	if g.only != nil {
		return []Port{*g.only}
	}
	return all
}

// firstOfEachNode returns the first member of each node.
func (g *Group) firstOfEachNode() []member {
	var found []member
	seen := map[string]bool{}
	for _, member := range g.members {
		if !seen[member.node] {
			seen[member.node] = true
			found = append(found, member)
		}
	}
	return found
}

// pair is who is asked about.
type pair struct{ from, to member }

// pairs returns the pairs that stand for two groups: from a member on each node to one on
// another node, so that each node of both groups is asked, and one pair on the same node.
// With each, they are all pairs.
func pairs(from, to Group, each bool) []pair {
	var found []pair
	add := func(f, t member) {
		p := pair{f, t}
		if f.name != t.name && !slices.ContainsFunc(found, func(pair pair) bool { return pair.from.name == f.name && pair.to.name == t.name }) {
			found = append(found, p)
		}
	}
	if each {
		for _, f := range from.members {
			for _, member := range to.members {
				if f.name != member.name {
					found = append(found, pair{f, member})
				}
			}
		}
		return found
	}
	senders, receivers := from.firstOfEachNode(), to.firstOfEachNode()
	if f, t, ok := neighbours(senders, to.members); ok {
		add(f, t)
	}
	for i, f := range senders {
		for index := range receivers {
			if member := receivers[(i+index)%len(receivers)]; member.node != f.node {
				add(f, member)
				break
			}
		}
	}
	for i, member := range receivers {
		if !slices.ContainsFunc(found, func(pair pair) bool { return pair.to.name == member.name }) {
			add(senders[i%len(senders)], member)
		}
	}
	return found
}

// neighbours returns the first sender that has a receiver on its node, and that receiver.
func neighbours(senders, receivers []member) (from, to member, ok bool) {
	for _, f := range senders {
		for _, member := range receivers {
			if member.node == f.node && member.name != f.name {
				return f, member, true
			}
		}
	}
	return from, to, false
}
