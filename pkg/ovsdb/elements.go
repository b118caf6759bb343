package ovsdb

import (
	"cmp"
	"slices"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Element is an element of what a column holds. Only elements of maps have keys.
type Element struct{ Key, Value string }

// Elements returns the elements of a column in the order of their texts: of a set or a map
// all, of an atom the only one. References to rows are given as the names of those rows.
func (n Names) Elements(row Row, column string) []Element {
	var found []Element
	switch v := row.columns[column].(type) {
	case nil:
	case rfc.OvsSet:
		for _, element := range v.GoSet {
			found = append(found, Element{Value: n.text(element)})
		}
	case rfc.OvsMap:
		for key, element := range v.GoMap {
			found = append(found, Element{n.text(key), n.text(element)})
		}
	default:
		found = []Element{{Value: n.text(v)}}
	}
	slices.SortFunc(found, func(a, b Element) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value)) })
	return found
}

// References returns the UUIDs of the rows that any column of a row refers to, by column.
func (r Row) References() map[string][]string {
	found := map[string][]string{}
	add := func(column string, value any) {
		if id, ok := value.(rfc.UUID); ok {
			found[column] = append(found[column], id.GoUUID)
		}
	}
	for column, value := range r.columns {
		switch v := value.(type) {
		case rfc.OvsSet:
			for _, element := range v.GoSet {
				add(column, element)
			}
		case rfc.OvsMap:
			for key, element := range v.GoMap {
				add(column, key)
				add(column, element)
			}
		default:
			add(column, v)
		}
	}
	return found
}
