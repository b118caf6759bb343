package ovsdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Tables lists the tables of the database.
func (c *Client) Tables() []string {
	var names []string
	for name := range c.schema.Tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// SelectAll returns all rows of a table with all columns.
func (c *Client) SelectAll(ctx context.Context, table string) ([]Row, error) {
	t := c.schema.Table(table)
	if t == nil {
		return nil, nil
	}
	var columns []string
	for name := range t.Columns {
		columns = append(columns, name)
	}
	return c.Select(ctx, table, columns...)
}

// Columns lists the columns that were read of the row.
func (r Row) Columns() []string {
	var names []string
	for name := range r.columns {
		if name != "_uuid" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Names are what rows are called, by UUID.
type Names map[string]string

// Compare gives a column of two rows as ovs-vsctl prints it, but for quotes, and
// "" twice where it is the same. Of sets and maps it gives the elements that the
// other row has not. What is referred to is given by name, where it has one.
func Compare(a, b Row, column string, ofA, ofB Names) (inA, inB string) {
	x, y := a.columns[column], b.columns[column]
	if inA, inB = ofA.text(x), ofB.text(y); inA == inB {
		return "", ""
	}
	p, setA := ofA.elements(x)
	q, setB := ofB.elements(y)
	if setA || setB {
		return without(p, q), without(q, p)
	}
	return inA, inB
}

// without writes the elements of some that are not in others.
func without(some, others []string) string {
	there := map[string]bool{}
	for _, one := range others {
		there[one] = true
	}
	var kept []string
	for _, one := range some {
		if !there[one] {
			kept = append(kept, one)
		}
	}
	return "{" + strings.Join(kept, ", ") + "}"
}

// elements lists what a set or map holds, in order; several is false for an atom.
func (n Names) elements(value any) (texts []string, several bool) {
	switch v := value.(type) {
	case rfc.OvsSet:
		for _, one := range v.GoSet {
			texts = append(texts, n.text(one))
		}
		several = len(v.GoSet) > 1
	case rfc.OvsMap:
		for key, one := range v.GoMap {
			texts = append(texts, n.text(key)+"="+n.text(one))
		}
		several = true
	default:
		texts = []string{n.text(v)}
	}
	slices.Sort(texts)
	return texts, several
}

func (n Names) text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case rfc.OvsSet:
		texts, several := n.elements(v)
		if several || len(texts) == 0 {
			return "[" + strings.Join(texts, ", ") + "]"
		}
		return texts[0]
	case rfc.OvsMap:
		texts, _ := n.elements(v)
		return "{" + strings.Join(texts, ", ") + "}"
	case rfc.UUID:
		return cmp.Or(n[v.GoUUID], v.GoUUID)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return v
	}
	return fmt.Sprint(value)
}
