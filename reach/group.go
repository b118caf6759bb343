package reach

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"ovs-offline/trace/names"
)

// Group is a row or a column: endpoints that behave alike, a service, or an address outside.
type Group struct {
	Name string `json:"name"`
	// Part is the namespace, the port groups or the network of the members.
	Part    string   `json:"part,omitempty"`
	Members []string `json:"members"`
	// Asked are the members that stand for the group, one of each node.
	Asked []string `json:"asked"`

	members []member
	only    *Port // the port of a service
	absent  bool  // the nodes of the members are not in the set, so they can't be asked
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
		m := member{name: name, node: last.endpoints[name].Node}
		var c class
		addressed, known := true, true
		for _, v := range views {
			e, ok := v.endpoints[name]
			known = known && ok
			addressed = addressed && len(e.IPs) > 0
			m.names = append(m.names, e.LogicalPort)
			c.key += v.alike(e) + "\n"
		}
		switch {
		case !known:
			single = append(single, name)
			continue
		case !addressed:
			unaddressed = append(unaddressed, name)
			continue
		}
		c.part = last.part(last.endpoints[name], by)
		if by == ByPort {
			c.key = name
		}
		i, exists := at[c]
		if !exists {
			i = len(found)
			at[c] = i
			e := last.endpoints[name]
			found = append(found, Group{Part: c.part, absent: e.Node == "" && e.Chassis != ""})
		}
		found[i].members = append(found[i].members, m)
	}
	for _, name := range views[0].order {
		if _, ok := last.endpoints[name]; !ok {
			single = append(single, name)
		}
	}
	label(found)
	return found, append(remark("have no known addresses and are left out", unaddressed), remark("are only in one of the two", single)...)
}

// senders returns the groups whose nodes are in the set, and a sentence about the others.
func senders(all []Group) (found []Group, remarks []string) {
	var absent []string
	for _, g := range all {
		if g.absent {
			absent = append(absent, g.memberNames()...)
		} else {
			found = append(found, g)
		}
	}
	return found, remark("are on nodes that were not collected, so they are asked as destinations only", absent)
}

// remark returns a sentence about endpoints, none without any.
func remark(what string, names []string) []string {
	const most = 5
	if len(names) == 0 {
		return nil
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{"these endpoints " + what + ": " + text}
}

// label names groups by their parts, or by their first members where a part has several
// groups, and sorts them.
func label(all []Group) {
	parts := map[string]int{}
	for _, g := range all {
		parts[g.Part]++
	}
	taken := map[string]bool{}
	for i := range all {
		g := &all[i]
		slices.SortFunc(g.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		first := g.members[0].name
		switch {
		case parts[g.Part] == 1:
			g.Name = g.Part
		case strings.HasPrefix(first, g.Part+"/"):
			g.Name = first
		default:
			g.Name = g.Part + ": " + first
		}
		if more := len(g.members) - 1; more > 0 && parts[g.Part] > 1 {
			g.Name += fmt.Sprintf(" +%d", more)
		}
		for n, name := 2, g.Name; taken[g.Name]; n++ {
			g.Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[g.Name] = true
	}
	slices.SortFunc(all, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

// services returns a group for each VIP that all views have.
func services(views []*view) []Group {
	var found []Group
	count := map[string]int{}
	for _, e := range views[len(views)-1].services {
		if !slices.ContainsFunc(views, func(v *view) bool { return !v.hasService(e) }) {
			count[e.Name]++
			g := single(e.Name, vip(e), len(views))
			if e.Port != 0 {
				g.only = &Port{e.Protocol, e.Port}
			}
			found = append(found, g)
		}
	}
	for i := range found {
		if g := &found[i]; count[g.Name] > 1 { // a service with several VIPs
			g.Name += " (" + g.members[0].names[0] + ")"
		}
	}
	slices.SortFunc(found, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// vip returns the VIP of a service as Ask takes it.
func vip(e names.Endpoint) string {
	if e.Port == 0 {
		return e.IPs[0].String()
	}
	return netip.AddrPortFrom(e.IPs[0], e.Port).String()
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
		found = append(found, single(name, name, views))
	}
	return found, nil
}

// single returns a group of one member that is on no node.
func single(name, asked string, views int) Group {
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
		for _, p := range patterns {
			for _, text := range texts {
				if ok, err := path.Match(strings.ReplaceAll(p, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00")); ok && err == nil {
					found, used[p] = true, true
				}
			}
		}
		return found
	}
	var found []Group
	for _, g := range all {
		if !matches(g.Name, g.Part) {
			g.members = slices.DeleteFunc(slices.Clone(g.members), func(m member) bool { return !matches(append(slices.Clone(m.names), m.name)...) })
		}
		if len(g.members) > 0 {
			found = append(found, g)
		}
	}
	for _, p := range patterns {
		if !used[p] {
			return nil, &UnknownError{p}
		}
	}
	return found, nil
}

func (g *Group) memberNames() []string {
	var found []string
	for _, m := range g.members {
		found = append(found, m.name)
	}
	return found
}

// describe sets what a group shows of its members.
func (g *Group) describe(each bool) {
	g.Members, g.Asked = g.memberNames(), nil
	asked := g.members
	if !each {
		asked = g.standing()
	}
	for _, m := range asked {
		g.Asked = append(g.Asked, m.name)
	}
}

// portsOf returns the ports that a group is asked with.
func (g *Group) portsOf(all []Port) []Port {
	if g.only != nil {
		return []Port{*g.only}
	}
	return all
}

// standing returns the first member of each node.
func (g *Group) standing() []member {
	var found []member
	seen := map[string]bool{}
	for _, m := range g.members {
		if !seen[m.node] {
			seen[m.node] = true
			found = append(found, m)
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
		if f.name != t.name && !slices.ContainsFunc(found, func(o pair) bool { return o.from.name == f.name && o.to.name == t.name }) {
			found = append(found, p)
		}
	}
	if each {
		for _, f := range from.members {
			for _, t := range to.members {
				if f.name != t.name {
					found = append(found, pair{f, t})
				}
			}
		}
		return found
	}
	senders, receivers := from.standing(), to.standing()
	if f, t, ok := neighbours(senders, to.members); ok {
		add(f, t)
	}
	for i, f := range senders {
		for k := range receivers {
			if t := receivers[(i+k)%len(receivers)]; t.node != f.node {
				add(f, t)
				break
			}
		}
	}
	for i, t := range receivers {
		if !slices.ContainsFunc(found, func(p pair) bool { return p.to.name == t.name }) {
			add(senders[i%len(senders)], t)
		}
	}
	return found
}

// neighbours returns the first sender that has a receiver on its node, and that receiver.
func neighbours(senders, receivers []member) (from, to member, ok bool) {
	for _, f := range senders {
		for _, t := range receivers {
			if t.node == f.node && t.name != f.name {
				return f, t, true
			}
		}
	}
	return from, to, false
}
