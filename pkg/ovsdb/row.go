package ovsdb

import (
	"encoding/json"
	"maps"
	"slices"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Row is a row of a table. Its methods return zero values for columns that the
// row lacks.
type Row struct {
	UUID    string
	columns rfc.Row
}

// ParseRow returns a row from its columns in the notation of RFC 7047, 5.1.
// Values in another notation are left out.
func ParseRow(uuid string, columns map[string]json.RawMessage) Row {
	row := Row{UUID: uuid, columns: make(rfc.Row, len(columns))}
	for column, text := range columns {
		if value, ok := valueOf(text); ok {
			row.columns[column] = value
		}
	}
	return row
}

// parseValue returns a <value> of RFC 7047, 5.1, in the types of libovsdb, whose own
// parser is six times as slow, and panics on lists of other forms.
func parseValue(value any) (any, bool) {
	list, isList := value.([]any)
	if !isList {
		return value, isAtom(value)
	}
	if len(list) != 2 {
		return nil, false
	}
	members, _ := list[1].([]any)
	switch list[0] {
	case "uuid", "named-uuid":
		uuid, ok := list[1].(string)
		return rfc.UUID{GoUUID: uuid}, ok
	case "set":
		set := rfc.OvsSet{GoSet: make([]any, 0, len(members))}
		for _, member := range members {
			element, ok := parseAtom(member)
			if !ok {
				return nil, false
			}
			set.GoSet = append(set.GoSet, element)
		}
		return set, members != nil
	case "map":
		values := rfc.OvsMap{GoMap: make(map[any]any, len(members))}
		for _, member := range members {
			pair, _ := member.([]any)
			if len(pair) != 2 {
				return nil, false
			}
			key, isKey := parseAtom(pair[0])
			value, isValue := parseAtom(pair[1])
			if !isKey || !isValue {
				return nil, false
			}
			values.GoMap[key] = value
		}
		return values, members != nil
	}
	return nil, false
}

// parseAtom returns an <atom> of RFC 7047, 5.1.
func parseAtom(value any) (any, bool) {
	if list, isList := value.([]any); isList {
		if len(list) != 2 || list[0] != "uuid" && list[0] != "named-uuid" {
			return nil, false
		}
		uuid, ok := list[1].(string)
		return rfc.UUID{GoUUID: uuid}, ok
	}
	return value, isAtom(value)
}

func isAtom(value any) bool {
	switch value.(type) {
	case string, float64, bool:
		return true
	}
	return false
}

// Columns returns the names of the columns that the row has, sorted.
func (r Row) Columns() []string {
	names := slices.Sorted(maps.Keys(r.columns))
	return slices.DeleteFunc(names, func(name string) bool { return name == "_uuid" })
}

// String returns a column that holds one string, "" if it holds none.
func (r Row) String(column string) string { return single[string](r, column) }

// Bool returns a column that holds one boolean.
func (r Row) Bool(column string) bool { return single[bool](r, column) }

// Int returns a column that holds one integer; ok is false if it holds none.
func (r Row) Int(column string) (n int, ok bool) {
	found := elementsOf[float64](r.columns[column])
	if len(found) != 1 {
		return 0, false
	}
	return int(found[0]), true
}

// Strings returns a column that is a set of strings.
func (r Row) Strings(column string) []string { return elementsOf[string](r.columns[column]) }

// Bools returns a column that is a set of booleans; an optional boolean that is
// not set is an empty set.
func (r Row) Bools(column string) []bool { return elementsOf[bool](r.columns[column]) }

// UUIDs returns a column that refers to rows.
func (r Row) UUIDs(column string) []string {
	var uuids []string
	for _, id := range elementsOf[rfc.UUID](r.columns[column]) {
		uuids = append(uuids, id.GoUUID)
	}
	return uuids
}

// Map returns a column that maps strings to strings.
func (r Row) Map(column string) map[string]string {
	out := map[string]string{}
	if values, ok := r.columns[column].(rfc.OvsMap); ok {
		for k, v := range values.GoMap {
			key, _ := k.(string)
			value, _ := v.(string)
			out[key] = value
		}
	}
	return out
}

// Value returns the string that a key has in a column that maps strings to strings.
func (r Row) Value(column, key string) string {
	values, _ := r.columns[column].(rfc.OvsMap)
	value, _ := values.GoMap[key].(string)
	return value
}

func single[T any](row Row, column string) (value T) {
	if found := elementsOf[T](row.columns[column]); len(found) == 1 {
		return found[0]
	}
	return value
}

// elementsOf returns the elements of one type in a set. An atom is a set of one.
func elementsOf[T any](value any) []T {
	set, ok := value.(rfc.OvsSet)
	if !ok {
		set.GoSet = []any{value}
	}
	var out []T
	for _, element := range set.GoSet {
		if v, ok := element.(T); ok {
			out = append(out, v)
		}
	}
	return out
}
