package ovsdb

import (
	"cmp"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Change is one operation of a transaction.
type Change struct{ op rfc.Operation }

// Columns are new values of columns: string, int, bool, []string,
// map[string]string, map[int]Ref, Ref, []Ref, or nil for the empty set.
type Columns map[string]any

// Ref refers to a row by its UUID, or by the name that Insert gave it.
type Ref struct {
	UUID string
	Name string
}

// Update sets columns of one row.
func Update(table, uuid string, columns Columns) Change {
	return Change{rfc.Operation{Op: "update", Table: table, Where: where(uuid), Row: row(columns)}}
}

// Await waits until a column of a row has a value. The transaction fails if this takes
// longer than the given number of milliseconds.
func Await(table, uuid, column string, value any, milliseconds int) Change {
	return Change{rfc.Operation{Op: "wait", Table: table, Where: where(uuid), Columns: []string{column},
		Until: "==", Rows: []rfc.Row{{column: notation(value)}}, Timeout: &milliseconds}}
}

// AwaitOther waits until a column of a row has another value than in the row as it
// was read. The transaction fails if this takes longer than the given number of
// milliseconds.
func AwaitOther(table string, read Row, column string, milliseconds int) Change {
	return Change{rfc.Operation{Op: "wait", Table: table, Where: where(read.UUID), Columns: []string{column},
		Until: "!=", Rows: []rfc.Row{{column: read.columns[column]}}, Timeout: &milliseconds}}
}

// Insert adds a row. Other operations of the transaction refer to it by name.
func Insert(table, name string, columns Columns) Change {
	return Change{rfc.Operation{Op: "insert", Table: table, UUIDName: name, Row: row(columns)}}
}

// DeleteAll removes all rows of a table.
func DeleteAll(table string) Change {
	none := rfc.UUID{GoUUID: "00000000-0000-0000-0000-000000000000"} // libovsdb leaves out an empty condition, which the server needs
	return Change{rfc.Operation{Op: "delete", Table: table, Where: []rfc.Condition{rfc.NewCondition("_uuid", rfc.ConditionNotEqual, none)}}}
}

func where(uuid string) []rfc.Condition {
	return []rfc.Condition{rfc.NewCondition("_uuid", rfc.ConditionEqual, rfc.UUID{GoUUID: uuid})}
}

func row(columns Columns) rfc.Row {
	out := rfc.Row{}
	for name, value := range columns {
		out[name] = notation(value)
	}
	return out
}

// notation returns a value in the notation of RFC 7047, 5.1.
func notation(value any) any {
	switch v := value.(type) {
	case nil:
		return setOf[string](nil)
	case []string:
		return setOf(v)
	case []Ref:
		return setOf(v)
	case map[int]Ref:
		values := rfc.OvsMap{GoMap: map[any]any{}}
		for key, ref := range v {
			values.GoMap[key] = notation(ref)
		}
		return values
	case map[string]string:
		values := rfc.OvsMap{GoMap: map[any]any{}}
		for key, text := range v {
			values.GoMap[key] = text
		}
		return values
	case Ref:
		return rfc.UUID{GoUUID: cmp.Or(v.Name, v.UUID)}
	default:
		return v
	}
}

func setOf[T any](elements []T) rfc.OvsSet {
	set := rfc.OvsSet{GoSet: make([]any, 0, len(elements))}
	for _, element := range elements {
		set.GoSet = append(set.GoSet, notation(element))
	}
	return set
}
