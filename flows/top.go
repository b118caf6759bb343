package flows

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

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
	limit      int
	candidates []candidate
}

// tally counts the flows with a cookie in a table. Most logical flows are one.
type tally struct {
	packets   uint64
	flows     uint32
	never     uint32
	clauses   uint32
	priority  int32
	metadata  uint32
	uncounted bool
}

type tallyKey struct {
	cookie uint32
	table  uint8
	bridge uint8
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
// what takes longer.
func Count(ctx context.Context, sources []Source, by By, limit int) (*Top, Listed, error) {
	var done Listed
	c := &counter{by: by, limit: limit, costs: map[sum]*Cost{}, words: map[rules.Origin]string{}}
	for i, s := range sources {
		n, err := Open(ctx, s.Name, s.Dir, "")
		if err != nil {
			return nil, done, nodeError(s.Name, err)
		}
		done.remark(s.Name, n.Remarks...)
		err = c.node(ctx, n, i, &done)
		n.Close()
		if err != nil {
			return nil, done, nodeError(s.Name, err)
		}
	}
	top := c.top(sources)
	return top, done, top.name(ctx)
}

// Examine finds the cross products and the duplicates.
func (t *Top) Examine(ctx context.Context) (err error) {
	if t.Products, err = products(ctx, t.sources, t.candidates, t.limit); err != nil {
		return err
	}
	t.Duplicates, err = duplicates(ctx, t.sources, t.limit)
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
		r, closeAll, err := openRules(ctx, s)
		if err != nil {
			return nodeError(s.Name, err)
		}
		for _, c := range own {
			if c.Name, err = wordsOf(r, rules.Origin{Table: c.Row, UUID: c.UUID}); err != nil {
				break
			}
		}
		closeAll()
		if err != nil {
			return nodeError(s.Name, err)
		}
	}
	return nil
}

// openRules opens the rules of a node without its flows.
func openRules(ctx context.Context, s Source) (r *rules.Rules, closeAll func(), err error) {
	n := &Node{dir: s.Dir}
	nb, sb, _, err := n.openDatabases(ctx)
	if err != nil {
		n.Close()
		return nil, nil, err
	}
	return rules.New(nb, sb), n.Close, nil
}

// node adds the flows of a node.
func (c *counter) node(ctx context.Context, n *Node, source int, done *Listed) error {
	counts := map[tallyKey]*tally{}
	for i, b := range n.Bridges {
		if i > 255 {
			break // a node with more bridges than that has none of OVN's among the last
		}
		err := n.each(ctx, b, &Filter{}, nil, done, func(r *record) (bool, error) {
			c.flows++
			done.Flows++
			key, err := b.ruleKey(r)
			if err != nil {
				return false, err
			}
			at := tallyKey{uint32(key.Cookie), uint8(r.table), uint8(i)}
			if key.Cookie > 0xffffffff || !n.isOVN(b) {
				at.cookie = 0
			}
			t := counts[at]
			if t == nil {
				t = &tally{priority: int32(key.Priority), metadata: uint32(key.Metadata)}
				counts[at] = t
			}
			t.add(r)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return c.resolve(ctx, n, source, counts)
}

func (t *tally) add(r *record) {
	t.flows++
	t.packets += r.Packets
	switch {
	case r.isClause():
		t.clauses++
	case !r.Counted:
		t.uncounted = true
	case r.Packets == 0:
		t.never++
	}
}

// atOnce is the number of cookies whose rows are looked up before they are added up.
const atOnce = 1 << 14

// resolve adds the counts of a node's cookies to what they are for. The rows are looked up
// on all processors.
func (c *counter) resolve(ctx context.Context, n *Node, source int, counts map[tallyKey]*tally) error {
	workers := make([]*rules.Origins, runtime.NumCPU())
	for i := range workers {
		if n.rules != nil {
			workers[i] = n.rules.NewOrigins()
		}
	}
	keys := slices.Collect(maps.Keys(counts))
	found := make([]rules.Origin, min(atOnce, len(keys)))
	for part := range slices.Chunk(keys, atOnce) {
		group, ctx := errgroup.WithContext(ctx)
		for w, origins := range workers {
			group.Go(func() error {
				for i := w; i < len(part); i += len(workers) {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					var err error
					if found[i], err = c.origin(n, n.Bridges[part[i].bridge], origins, recordOf(part[i], counts[part[i]])); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for i, key := range part {
			if err := c.resolved(n, source, key, counts[key], found[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordOf returns a flow that counts were made of, as far as its row depends on it.
func recordOf(key tallyKey, t *tally) *record {
	return &record{cookie: uint64(key.cookie), table: int(key.table), priority: int(t.priority), metadata: uint64(t.metadata)}
}

// resolved adds the counts of a cookie, whose row is known.
func (c *counter) resolved(n *Node, source int, key tallyKey, t *tally, origin rules.Origin) error {
	r := recordOf(key, t)
	if origin.Table == "" && r.cookie != 0 {
		c.unknown += int(t.flows)
	}
	if t.flows >= manyFlowsOfOne && origin.IsNorthbound() {
		c.candidate(candidate{source, int(key.bridge), r.table, r.cookie, origin, int(t.flows)})
	}
	return c.add(n, n.Bridges[key.bridge], source, r, origin, t)
}

// origin returns the row that a flow was made from. Where several rows have its cookie, the
// rules tell them apart.
func (c *counter) origin(n *Node, b *Bridge, origins *rules.Origins, r *record) (rules.Origin, error) {
	if !n.isOVN(b) {
		return rules.Origin{}, nil
	}
	key := b.key(r)
	origin, ok, several, err := origins.Find(key)
	if err != nil || ok || !several {
		return origin, err
	}
	rule, _, err := n.rules.Find(key)
	if rule.Cause.Table != "" {
		return rules.Origin{Table: rule.Cause.Table, UUID: rule.Cause.UUID, Stage: rule.Stage}, err
	}
	return rules.Origin{Table: rule.Row, UUID: rule.UUID, Stage: rule.Stage}, err
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
