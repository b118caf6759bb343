package flows

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
)

// Product is a rule that became many flows on a node.
type Product struct {
	Node   string   `json:"node,omitempty"`
	Bridge string   `json:"bridge"`
	Table  int      `json:"table"`
	Stage  string   `json:"stage,omitempty"`
	Name   string   `json:"name"`
	Row    string   `json:"row"`
	UUID   string   `json:"uuid"`
	Flows  int      `json:"flows"`
	Fields []Factor `json:"fields"` // with several values each, those with the most first
	// Clauses is the number of flows that are clauses of conjunctions: their values are
	// added up, not multiplied. It is 0 for a cross product.
	Clauses int `json:"clauses"`
}

// Factor is a field of the flows of a rule, and the number of its values.
type Factor struct {
	Field  string `json:"field"`
	Values int    `json:"values"`
}

// maxValues bounds the values of a field that are told apart, and so the memory.
const maxValues = 100_000

// examineProducts reads again the flows of the rules with the most, and counts the values of
// their fields.
func (t *Top) examineProducts(ctx context.Context) error {
	t.Products, t.Conjunctions = []Product{}, []Product{}
	candidates := sortCandidates(t.candidates)
	if t.limit > 0 && len(candidates) > 2*t.limit {
		candidates = candidates[:2*t.limit]
	}
	for i, source := range t.sources {
		own := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return c.source != i })
		if len(own) == 0 {
			continue
		}
		node, done, err := t.open(ctx, i)
		if err != nil {
			return err
		}
		of, err := node.products(ctx, own)
		done()
		if err != nil {
			return nodeError(source.Name, err)
		}
		for _, product := range of {
			if product.Clauses > 0 {
				t.Conjunctions = append(t.Conjunctions, product)
			} else {
				t.Products = append(t.Products, product)
			}
		}
	}
	for _, list := range []*[]Product{&t.Products, &t.Conjunctions} {
		slices.SortStableFunc(*list, func(a, b Product) int { return cmp.Or(cmp.Compare(b.Flows, a.Flows), cmp.Compare(a.Name, b.Name)) })
		if t.limit > 0 && len(*list) > t.limit {
			*list = (*list)[:t.limit]
		}
	}
	return nil
}

// product collects the values of one candidate's fields.
type product struct {
	Product
	values map[string]map[string]bool
}

// products returns the products of a node, one for each rule and table.
func (n *Node) products(ctx context.Context, own []candidate) (found []Product, err error) {
	for i, bridge := range n.Bridges {
		type key struct {
			cookie uint64
			table  int
		}
		wanted := map[key]*product{}
		for _, rule := range own {
			if rule.bridge != i {
				continue
			}
			values := &product{Product: Product{Node: n.Name, Bridge: bridge.Name, Table: rule.table, Row: rule.origin.Table, UUID: rule.origin.UUID, Stage: rule.origin.Stage}, values: map[string]map[string]bool{}}
			if values.Name, err = wordsOf(n.rules, rule.origin); err != nil {
				return nil, err
			}
			wanted[key{rule.cookie, rule.table}] = values
		}
		if len(wanted) == 0 {
			continue
		}
		cookies := map[string]bool{"0x0": true} // of clauses
		for k := range wanted {
			cookies[fmt.Sprintf("%#x", k.cookie)] = true
		}
		var ignored Listed
		err := n.eachFlow(ctx, bridge, &Filter{}, func(line string) bool { return cookies[cookieIn(line)] }, &ignored, func(flow *record) (bool, error) {
			of, err := bridge.ruleKey(flow)
			if p := wanted[key{of.Cookie, flow.Table}]; p != nil && err == nil {
				p.add(flow)
			}
			return true, err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range wanted {
			if p.factors(); p.multiplied() {
				found = merge(found, p.Product)
			}
		}
	}
	return found, nil
}

// merge adds a product to the product of the same rule in the list. Each logical flow of a rule, as
// one for new connections and one for the others, has the rule's values again.
func merge(list []Product, product Product) []Product {
	at := slices.IndexFunc(list, func(o Product) bool {
		return o.Bridge == product.Bridge && o.Table == product.Table && o.UUID == product.UUID
	})
	if at < 0 {
		return append(list, product)
	}
	same := &list[at]
	if product.Flows > same.Flows {
		same.Fields = product.Fields
	}
	same.Flows += product.Flows
	same.Clauses += product.Clauses
	return list
}

// cookieIn returns the cookie in a line of a dump.
func cookieIn(line string) string {
	_, text, _ := strings.Cut(line, "cookie=")
	value, _, _ := strings.Cut(text, ",")
	return value
}

func (p *product) add(flow *record) {
	p.Flows++
	if flow.isClause() {
		p.Clauses++
	}
	for field := range openflow.Tokens(flow.Match) {
		name, value, _ := strings.Cut(field, "=")
		if name == "conj_id" {
			continue
		}
		if p.values[name] == nil {
			p.values[name] = map[string]bool{}
		}
		if len(p.values[name]) < maxValues {
			p.values[name][strings.Clone(value)] = true
		}
	}
}

// factors lists the fields with several values.
func (p *product) factors() {
	names := map[string]string{"metadata": "datapath", "reg14": "inport", "reg15": "outport"}
	for name, values := range p.values {
		if len(values) > 1 {
			p.Fields = append(p.Fields, Factor{cmp.Or(names[name], name), len(values)})
		}
	}
	slices.SortFunc(p.Fields, func(a, b Factor) int { return cmp.Or(b.Values-a.Values, strings.Compare(a.Field, b.Field)) })
}

// multiplied reports whether several fields have several values. A rule has flows of its own in each
// datapath in any case.
func (p *product) multiplied() bool {
	fields := len(p.Fields)
	if slices.ContainsFunc(p.Fields, func(f Factor) bool { return f.Field == "datapath" }) {
		fields--
	}
	return fields > 1 || p.Clauses > 0
}

// Text returns the fields with their numbers of values: "40 nw_src x 30 tp_dst", or of a
// conjunction, "40 nw_src + 30 tp_dst".
func (p Product) Text() string {
	sign := " x "
	if p.Clauses > 0 {
		sign = " + "
	}
	var parts []string
	for _, f := range p.Fields {
		parts = append(parts, fmt.Sprintf("%d %s", f.Values, f.Field))
	}
	return strings.Join(parts, sign)
}
