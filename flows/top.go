package flows

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/trace/rules"
)

// By is what flows are added up by.
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

	source int // a node that has it
}

// sum is what flows are added up for: a row, or a name.
type sum struct {
	origin rules.Origin
	name   string
}

// Top is what costs how many flows.
type Top struct {
	By      By     `json:"by"`
	Flows   int    `json:"flows"`   // all
	Counted int    `json:"counted"` // those that Costs add up to, which is fewer by acl, policy, lb or route
	Groups  int    `json:"groups"`  // the number of Costs before the limit
	Costs   []Cost `json:"costs"`   // those with the most flows first
	// NeverHit are those that matched no packet on any node, and Never how many there are.
	NeverHit []Cost `json:"never_hit"`
	Never    int    `json:"never_hit_groups"`
	// Products are the rules that became many flows, because each value of a field was
	// multiplied by those of others.
	Products []Product `json:"cross_products"`
	// Duplicates are rules with the same match and priority in the same place.
	Duplicates []Duplicate `json:"duplicates"`
	Unknown    int         `json:"unknown"` // flows with a cookie that no row has
	Shadows    *Shadows    `json:"shadowed,omitempty"`

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
func (t *Top) open(ctx context.Context, source int) (n *Node, done func(), err error) {
	if source == len(t.sources)-1 && t.last != nil {
		return t.last, func() {}, nil
	}
	s := t.sources[source]
	if n, err = Open(ctx, s.Name, s.Dir, ""); err != nil {
		return nil, nil, nodeError(s.Name, err)
	}
	return n, n.Close, nil
}

// counter adds up the flows of the nodes.
type counter struct {
	by       By
	limit    int
	costs    map[sum]*Cost
	words    map[rules.Origin]string // of ACLs, policy routes and load balancers
	flows    int
	unknown  int
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

// Count returns what costs how many flows, the first limit of each list. Examine adds
// what takes longer. The caller has to close the Top.
func Count(ctx context.Context, sources []Source, by By, limit int) (*Top, Listed, error) {
	var done Listed
	c := &counter{by: by, limit: limit, costs: map[sum]*Cost{}, words: map[rules.Origin]string{}}
	var last *Node
	for i, s := range sources {
		if last != nil {
			last.Close()
		}
		n, t, err := openTallied(ctx, s)
		if err != nil {
			return nil, done, nodeError(s.Name, err)
		}
		last = n
		done.remark(s.Name, n.Remarks...)
		done.tallied(n, t)
		c.flows += t.flows
		if err := c.resolve(ctx, n, i, t.counts); err != nil {
			n.Close()
			return nil, done, nodeError(s.Name, err)
		}
	}
	top := c.top(sources)
	top.last = last
	if err := top.name(ctx); err != nil {
		top.Close()
		return nil, done, err
	}
	return top, done, nil
}

// Examine finds the cross products and the duplicates.
func (t *Top) Examine(ctx context.Context) (err error) {
	if t.Products, err = t.products(ctx); err != nil {
		return err
	}
	t.Duplicates, err = t.duplicates(ctx)
	return err
}

// name names the rules that are listed, from the databases of nodes that have them.
func (t *Top) name(ctx context.Context) error {
	for i, s := range t.sources {
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
		n, done, err := t.open(ctx, i)
		if err != nil {
			return err
		}
		for _, c := range own {
			if c.Name, err = wordsOf(n.rules, rules.Origin{Table: c.Row, UUID: c.UUID}); err != nil {
				break
			}
		}
		done()
		if err != nil {
			return nodeError(s.Name, err)
		}
	}
	return nil
}

// add adds a count to its group.
func (c *counter) add(n *Node, b *Bridge, source int, r *record, origin rules.Origin, t *tally) error {
	at, ok, err := c.group(n, b, r, origin)
	if err != nil || !ok {
		return err
	}
	cost := c.costs[at]
	if cost == nil {
		cost = &Cost{Name: at.name, Row: at.origin.Table, UUID: at.origin.UUID, Counted: true, source: source}
		c.costs[at] = cost
	}
	cost.Flows += int(t.flows)
	cost.NeverHit += int(t.never)
	cost.Packets += t.packets
	cost.Counted = cost.Counted && !t.uncounted
	if n.Name != "" {
		if cost.Nodes == nil {
			cost.Nodes = map[string]int{}
		}
		cost.Nodes[n.Name] += int(t.flows)
	}
	return nil
}

// group returns what a flow counts for; ok is false if it counts for nothing.
func (c *counter) group(n *Node, b *Bridge, r *record, origin rules.Origin) (at sum, ok bool, err error) {
	row := origin
	row.Stage = ""
	named := func(name string) (sum, bool, error) { return sum{name: name}, true, nil }
	switch c.by {
	case ByStage:
		return named(cmp.Or(origin.Stage, n.tableName(b, r.table), fmt.Sprintf("table %d of %s", r.table, b.Name)))
	case ByTables:
		return named(strings.TrimSpace(fmt.Sprintf("%s table %d %s", b.Name, r.table, n.tableName(b, r.table))))
	case ByNode:
		return named(cmp.Or(n.Name, "this node"))
	case ByACL:
		return sum{origin: row}, origin.Table == "ACL", nil
	case ByRoute:
		isRoute := origin.Table == "Logical_Router_Static_Route" || origin.IsNorthbound() && strings.HasPrefix(origin.Stage, "lr_in_ip_routing")
		return sum{origin: row}, isRoute, nil
	case ByLB, ByPolicy:
		return c.owner(n, row)
	}
	if origin.IsLogicalFlow() {
		return named("no northbound row: stage " + origin.Stage)
	}
	return sum{origin: row}, origin.Table != "", nil
}

// owner returns the load balancer, or what the ACL or policy route of a flow belongs to.
func (c *counter) owner(n *Node, row rules.Origin) (at sum, ok bool, err error) {
	wanted := []string{"Load_Balancer"} // northbound and southbound rows have the same words
	if c.by == ByPolicy {
		wanted = []string{"ACL", "Logical_Router_Policy"}
	}
	if !slices.Contains(wanted, row.Table) {
		return sum{}, false, nil
	}
	words, known := c.words[row]
	if !known {
		if words, err = wordsOf(n.rules, row); err != nil {
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

// wordsOf describes a row.
func wordsOf(r *rules.Rules, origin rules.Origin) (string, error) {
	if origin.IsNorthbound() {
		if words, err := r.NB(origin.Table, origin.UUID); words != "" || err != nil {
			return words, err
		}
	}
	words, err := r.SB(origin.Table, origin.UUID)
	return cmp.Or(words, origin.Table+" "+origin.UUID), err
}

// top returns the sums.
func (c *counter) top(sources []Source) *Top {
	all := slices.SortedFunc(maps.Values(c.costs), func(a, b *Cost) int {
		return cmp.Or(b.Flows-a.Flows, strings.Compare(a.Name, b.Name), strings.Compare(a.UUID, b.UUID))
	})
	t := &Top{sources: sources, limit: c.limit, candidates: c.products, By: c.by, Flows: c.flows, Groups: len(all), Unknown: c.unknown, Costs: []Cost{}, NeverHit: []Cost{}}
	for i, cost := range all {
		t.Counted += cost.Flows
		if c.within(i) {
			t.Costs = append(t.Costs, *cost)
		}
		if cost.Packets == 0 && cost.Counted {
			if c.within(t.Never) {
				t.NeverHit = append(t.NeverHit, *cost)
			}
			t.Never++
		}
	}
	return t
}

func (c *counter) within(i int) bool { return c.limit == 0 || i < c.limit }

// manyFlowsOfOne is the number of flows of one rule in one table from which it may be a
// product.
const manyFlowsOfOne = 8

// candidate keeps the rules with the most flows.
func (c *counter) candidate(one candidate) {
	c.products = append(c.products, one)
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
