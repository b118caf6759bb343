package flows

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
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
	// added up, not multiplied.
	Clauses int `json:"clauses"`
}

// Factor is a field of the flows of a rule, and the number of its values.
type Factor struct {
	Field  string `json:"field"`
	Values int    `json:"values"`
}

// maxValues bounds the values of a field that are told apart, and so the memory.
const maxValues = 100_000

// products reads again the flows of the rules with the most, and counts the values of
// their fields.
func (t *Top) products(ctx context.Context) ([]Product, error) {
	found := []Product{}
	candidates := sortCandidates(t.candidates)
	if t.limit > 0 && len(candidates) > 2*t.limit {
		candidates = candidates[:2*t.limit]
	}
	for i, s := range t.sources {
		own := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return c.source != i })
		if len(own) == 0 {
			continue
		}
		n, done, err := t.open(ctx, i)
		if err != nil {
			return nil, err
		}
		of, err := n.products(ctx, own)
		done()
		if err != nil {
			return nil, nodeError(s.Name, err)
		}
		found = append(found, of...)
	}
	slices.SortStableFunc(found, func(a, b Product) int { return cmp.Compare(b.Flows, a.Flows) })
	if t.limit > 0 && len(found) > t.limit {
		found = found[:t.limit]
	}
	return found, nil
}

// product collects the values of one candidate's fields.
type product struct {
	Product
	values map[string]map[string]bool
}

func (n *Node) products(ctx context.Context, own []candidate) (found []Product, err error) {
	for i, b := range n.Bridges {
		type key struct {
			cookie uint64
			table  int
		}
		wanted := map[key]*product{}
		for _, c := range own {
			if c.bridge != i {
				continue
			}
			p := &product{Product: Product{Node: n.Name, Bridge: b.Name, Table: c.table, Row: c.origin.Table, UUID: c.origin.UUID, Stage: c.origin.Stage}, values: map[string]map[string]bool{}}
			if p.Name, err = wordsOf(n.rules, c.origin); err != nil {
				return nil, err
			}
			wanted[key{c.cookie, c.table}] = p
		}
		if len(wanted) == 0 {
			continue
		}
		cookies := map[string]bool{"0x0": true} // of clauses
		for k := range wanted {
			cookies[fmt.Sprintf("%#x", k.cookie)] = true
		}
		var ignored Listed
		err := n.each(ctx, b, &Filter{}, func(line string) bool { return cookies[cookieIn(line)] }, &ignored, func(r *record) (bool, error) {
			of, err := b.ruleKey(r)
			if p := wanted[key{of.Cookie, r.table}]; p != nil && err == nil {
				p.add(r)
			}
			return true, err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range wanted {
			if p.factors(); p.multiplied() {
				found = append(found, p.Product)
			}
		}
	}
	return found, nil
}

// cookieIn returns the cookie in a line of a dump.
func cookieIn(line string) string {
	_, text, _ := strings.Cut(line, "cookie=")
	value, _, _ := strings.Cut(text, ",")
	return value
}

func (p *product) add(r *record) {
	p.Flows++
	if r.isClause {
		p.Clauses++
	}
	for match := r.fields; match != ""; {
		end := openflow.IndexSeparator(match, true)
		name, value, _ := strings.Cut(match[:end], "=")
		match = match[min(end+1, len(match)):]
		if name == "conj_id" || name == "" {
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

// multiplied reports whether several fields have several values. Each datapath has its own
// flows whatever the rule says.
func (p *product) multiplied() bool {
	fields := len(p.Fields)
	if slices.ContainsFunc(p.Fields, func(f Factor) bool { return f.Field == "datapath" }) {
		fields--
	}
	return fields > 1 || p.Clauses > 0
}

// Text returns the fields with their numbers of values: "40 nw_src x 30 tp_dst".
func (p Product) Text() string {
	sign := " x "
	if p.Clauses > 0 {
		sign = " + "
	}
	var parts []string
	for _, f := range p.Fields {
		parts = append(parts, fmt.Sprintf("%d %s", f.Values, f.Field))
	}
	text := strings.Join(parts, sign)
	if p.Clauses > 0 {
		text = strings.TrimSuffix("conjunction: "+text, ": ")
	}
	return text
}
