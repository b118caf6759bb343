package flows

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/snapshot/rules"
)

// By selects what flows are added up by.
type By string

// The kinds of sums.
const (
	ByRule   By = "rule" // the northbound row, or else the southbound one
	ByACL    By = "acl"
	ByPolicy By = "policy" // what ACLs and policy routes belong to
	ByLB     By = "lb"
	ByRoute  By = "route"
	ByStage  By = "stage"
	ByTables By = "table"
	ByNode   By = "node"
)

// Kinds lists what flows can be added up by.
func Kinds() []By { return []By{ByRule, ByACL, ByPolicy, ByLB, ByRoute, ByStage, ByTables, ByNode} }

// Cost is how many flows something has.
type Cost struct {
	Name     string         `json:"name"`
	Row      string         `json:"row,omitempty"` // the table of the database, of a rule
	UUID     string         `json:"uuid,omitempty"`
	Flows    int            `json:"flows"`
	NeverHit int            `json:"never_hit"`
	Packets  uint64         `json:"packets"`
	Counted  bool           `json:"counted"`         // every flow has recorded counters
	Nodes    map[string]int `json:"nodes,omitempty"` // the flows of each node of a set

	source int    // a node that has it
	match  string // of an ACL, with its direction
}

// sum is what flows are added up for: a row, or a name.
type sum struct {
	origin rules.Origin
	name   string
}

// Top lists what costs the most flows.
type Top struct {
	By      By     `json:"by"`
	Flows   int    `json:"flows"`   // all
	Counted int    `json:"counted"` // flows that Costs count, which are fewer by acl, policy, lb or route
	Groups  int    `json:"groups"`  // the number of Costs before the limit
	Costs   []Cost `json:"costs"`   // the most flows first
	// NeverHit lists the groups that matched no packet on any node, and Never counts them.
	NeverHit []Cost `json:"never_hit"`
	Never    int    `json:"never_hit_groups"`
	// Own is what ovn-northd adds to every switch and router: by rule, the flows of logical flows
	// that name no northbound row. It is in no list. Nil if there are none.
	Own *Cost `json:"own,omitempty"`
	// Products are the rules that became many flows, one for each combination of the values of
	// several fields.
	Products []Product `json:"cross_products"`
	// Conjunctions are the rules that became clauses of conjunctions.
	Conjunctions []Product `json:"conjunctions"`
	// Duplicates are rules with the same match and priority in the same place.
	Duplicates []Duplicate `json:"duplicates"`
	Unknown    int         `json:"unknown"` // flows with a cookie that no row has
	// UnknownOf has the numbers of these flows by the names of the nodes that have some.
	UnknownOf map[string]int `json:"unknown_of,omitempty"`

	sources    []Source
	last       *Node // the node of the last source
	limit      int
	candidates []candidate
}

// Close closes what Count left open for Examine.
func (t *Top) Close() {
	if t.last != nil {
		t.last.Close()
	}
}

// open opens the node of a source. The caller has to call done.
func (t *Top) open(ctx context.Context, source int) (node *Node, done func(), err error) {
	if source == len(t.sources)-1 && t.last != nil {
		return t.last, func() {}, nil
	}
	s := t.sources[source]
	if node, err = Open(ctx, s.Name, s.Dir, ""); err != nil {
		return nil, nil, nodeError(s.Name, err)
	}
	return node, node.Close, nil
}

// counter adds up the flows of the nodes.
type counter struct {
	by       By
	limit    int
	costs    map[sum]*Cost
	own      *Cost                   // as in Top
	zones    bool                    // several nodes, whose ACLs may belong to several zones
	acls     map[string]sum          // by their UUIDs, and by their words and matches, where there are zones
	words    map[rules.Origin]string // of ACLs, policy routes and load balancers
	flows    int
	unknown  map[string]int // by the names of the nodes
	products []candidate
}

// candidate is a rule with many flows on a node.
type candidate struct {
	source, bridge int
	table          int
	cookie         uint64
	origin         rules.Origin
	flows          int
}

// Count adds up the flows of nodes, and lists what costs the most, up to limit entries in each list. Examine adds
// what takes longer. The caller has to close the Top.
func Count(ctx context.Context, sources []Source, by By, limit int) (*Top, Listed, error) {
	var done Listed
	count := &counter{by: by, limit: limit, costs: map[sum]*Cost{}, words: map[rules.Origin]string{}, zones: len(sources) > 1, acls: map[string]sum{}, unknown: map[string]int{}}
	var last *Node
	for i, source := range sources {
		if last != nil {
			last.Close()
		}
		node, counts, err := openTallied(ctx, source)
		if err != nil {
			return nil, done, nodeError(source.Name, err)
		}
		last = node
		done.remark(source.Name, node.Remarks...)
		done.addTallied(node, counts)
		count.flows += counts.flows
		if err := count.resolve(ctx, node, i, counts.counts); err != nil {
			node.Close()
			return nil, done, nodeError(source.Name, err)
		}
	}
	top := count.top(sources)
	top.last = last
	if err := top.name(ctx); err != nil {
		top.Close()
		return nil, done, err
	}
	return top, done, nil
}

// Examine finds the cross products, the conjunctions and the duplicates.
func (t *Top) Examine(ctx context.Context) (err error) {
	if err = t.examineProducts(ctx); err != nil {
		return err
	}
	t.Duplicates, err = t.duplicates(ctx)
	return err
}

// name names the rules that are listed, from the databases of nodes that have them.
func (t *Top) name(ctx context.Context) error {
	for i, source := range t.sources {
		var own []*Cost
		for _, list := range [][]Cost{t.Costs, t.NeverHit} {
			for j := range list {
				if c := &list[j]; c.Name == "" && c.source == i {
					own = append(own, c)
				}
			}
		}
		if len(own) == 0 {
			continue
		}
		node, done, err := t.open(ctx, i)
		if err != nil {
			return err
		}
		err = node.nameCosts(own)
		done()
		if err != nil {
			return nodeError(source.Name, err)
		}
	}
	t.Costs, t.NeverHit = t.listed(t.Costs), t.listed(t.NeverHit)
	return nil
}

// nameCosts names rules of a node.
func (n *Node) nameCosts(costs []*Cost) (err error) {
	for _, cost := range costs {
		if cost.Name, err = wordsOf(n.rules, rules.Origin{Table: cost.Row, UUID: cost.UUID}); err != nil {
			return err
		}
		if cost.Row == "ACL" {
			if cost.match, err = n.rules.MatchOf(cost.UUID); err != nil {
				return err
			}
		}
	}
	return nil
}

// distinguish adds their matches to the names of ACLs that have the same words.
func distinguish(costs []Cost) {
	count := map[string]int{}
	for _, c := range costs {
		count[c.Name]++
	}
	for i := range costs {
		if c := &costs[i]; c.match != "" && count[c.Name] > 1 {
			c.Name += ", " + c.match
		}
	}
}

// add adds a count to its group.
func (c *counter) add(node *Node, bridge *Bridge, source int, flow *record, origin rules.Origin, tally *tally) error {
	if c.by == ByRule && origin.IsLogicalFlow() && node.nb != nil {
		if c.own == nil {
			c.own = &Cost{Name: "of every switch and router, for no northbound row", Counted: true, source: source}
		}
		c.own.add(node, tally)
		return nil
	}
	at, ok, err := c.group(node, bridge, flow, origin)
	if err != nil || !ok {
		return err
	}
	cost := c.costs[at]
	if cost == nil {
		cost = &Cost{Name: at.name, Row: at.origin.Table, UUID: at.origin.UUID, Counted: true, source: source}
		c.costs[at] = cost
	}
	cost.add(node, tally)
	return nil
}

// add adds a count of a node.
func (c *Cost) add(node *Node, tally *tally) {
	c.Flows += int(tally.flows)
	c.NeverHit += int(tally.never)
	c.Packets += tally.packets
	c.Counted = c.Counted && !tally.uncounted
	if node.Name != "" {
		if c.Nodes == nil {
			c.Nodes = map[string]int{}
		}
		c.Nodes[node.Name] += int(tally.flows)
	}
}

// group returns what a flow counts for; ok is false if it counts for nothing.
func (c *counter) group(node *Node, bridge *Bridge, flow *record, origin rules.Origin) (at sum, ok bool, err error) {
	row := origin
	row.Stage = ""
	named := func(name string) (sum, bool, error) { return sum{name: name}, true, nil }
	switch c.by {
	case ByStage:
		return named(cmp.Or(origin.Stage, node.tableName(bridge, flow.Table), fmt.Sprintf("table %d of %s", flow.Table, bridge.Name)))
	case ByTables:
		return named(strings.TrimSpace(fmt.Sprintf("%s table %d %s", bridge.Name, flow.Table, node.tableName(bridge, flow.Table))))
	case ByNode:
		return named(cmp.Or(node.Name, "this node"))
	case ByACL:
		if origin.Table != "ACL" {
			return sum{}, false, nil
		}
		return c.acl(node, row)
	case ByRoute:
		isRoute := origin.Table == "Logical_Router_Static_Route" || origin.IsNorthbound() && rules.IsAbout(origin.Stage, "Logical_Router_Static_Route")
		return sum{origin: row}, isRoute, nil
	case ByLB, ByPolicy:
		return c.owner(node, row)
	}
	if origin.IsLogicalFlow() {
		return named("logical flows of stage " + origin.Stage) // no northbound database was collected
	}
	if origin.Table == "ACL" {
		return c.acl(node, row)
	}
	return sum{origin: row}, origin.Table != "", nil
}

// acl returns what an ACL counts for: its row, or in the zones of a set, each of which has rows
// of its own for the same ACL, the first of these rows.
func (c *counter) acl(node *Node, row rules.Origin) (at sum, ok bool, err error) {
	if !c.zones {
		return sum{origin: row}, true, nil
	}
	if at, ok = c.acls[row.UUID]; ok {
		return at, true, nil
	}
	words, err := wordsOf(node.rules, row)
	if err != nil {
		return sum{}, false, err
	}
	match, err := node.rules.MatchOf(row.UUID)
	if err != nil {
		return sum{}, false, err
	}
	same := words + ", " + match
	if at, ok = c.acls[same]; !ok {
		at = sum{origin: row}
		c.acls[same] = at
	}
	c.acls[row.UUID] = at
	return at, true, nil
}

// owner returns the load balancer, or what the ACL or policy route of a flow belongs to.
func (c *counter) owner(node *Node, row rules.Origin) (at sum, ok bool, err error) {
	wanted := []string{"Load_Balancer"} // northbound and southbound rows have the same words
	if c.by == ByPolicy {
		wanted = []string{"ACL", "Logical_Router_Policy"}
	}
	if !slices.Contains(wanted, row.Table) {
		return sum{}, false, nil
	}
	words, known := c.words[row]
	if !known {
		if words, err = wordsOf(node.rules, row); err != nil {
			return sum{}, false, err
		}
		if row.Table == "ACL" {
			words = policyOf(words)
		}
		c.words[row] = words
	}
	return sum{name: words}, true, nil
}

// policyOf returns what an ACL belongs to, from its words without its own details.
func policyOf(words string) string {
	for _, details := range []string{" (ACL priority ", " (priority "} {
		if at := strings.LastIndex(words, details); at > 0 {
			return words[:at]
		}
	}
	return words
}

// wordsOf describes the row that flows were made from.
func wordsOf(rules *rules.Rules, origin rules.Origin) (string, error) {
	if origin.IsNorthbound() {
		if words, err := rules.DescribeNorthbound(origin.Table, origin.UUID); words != "" || err != nil {
			return words, err
		}
	}
	words, err := rules.DescribeSouthbound(origin.Table, origin.UUID)
	return cmp.Or(words, origin.Table+" "+origin.UUID), err
}

// top returns the sums.
func (c *counter) top(sources []Source) *Top {
	all := slices.SortedFunc(maps.Values(c.costs), func(a, b *Cost) int {
		return cmp.Or(b.Flows-a.Flows, strings.Compare(a.Name, b.Name), strings.Compare(a.UUID, b.UUID))
	})
	sums := &Top{sources: sources, limit: c.limit, candidates: c.products, By: c.by, Flows: c.flows, Groups: len(all), UnknownOf: c.unknown, Own: c.own, Costs: []Cost{}, NeverHit: []Cost{}}
	for _, flows := range c.unknown {
		sums.Unknown += flows
	}
	for _, cost := range all {
		sums.Counted += cost.Flows
		if c.mayBeListed(sums.Costs, cost) {
			sums.Costs = append(sums.Costs, *cost)
		}
		if cost.Packets == 0 && cost.Counted {
			if c.mayBeListed(sums.NeverHit, cost) {
				sums.NeverHit = append(sums.NeverHit, *cost)
			}
			sums.Never++
		}
	}
	return sums
}

// mayBeListed reports whether a cost, which comes after the others of a list, may be within its limit: of as many flows as
// the last of them, the first by name are, and the costs have no names yet.
func (c *counter) mayBeListed(list []Cost, cost *Cost) bool {
	const mostEqual = 1000
	return c.limit == 0 || len(list) < c.limit || list[c.limit-1].Flows == cost.Flows && len(list) < c.limit+mostEqual
}

// listed returns the costs that are listed, in order.
func (t *Top) listed(list []Cost) []Cost {
	slices.SortStableFunc(list, func(a, b Cost) int {
		return cmp.Or(b.Flows-a.Flows, strings.Compare(a.Name, b.Name), strings.Compare(a.match, b.match))
	})
	if t.limit > 0 && len(list) > t.limit {
		list = list[:t.limit]
	}
	distinguish(list)
	return list
}

// manyFlowsOfOne is the number of flows of one rule in one table from which it may be a
// product.
const manyFlowsOfOne = 8

// keepCandidate keeps a rule, and drops the rules with the fewest flows when there are many.
func (c *counter) keepCandidate(rule candidate) {
	c.products = append(c.products, rule)
	if most := max(4*c.limit, 256); len(c.products) > 2*most {
		c.products = sortCandidates(c.products)[:most]
	}
}

func sortCandidates(list []candidate) []candidate {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(b.flows-a.flows, cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.source, b.source))
	})
	return list
}
