package file

import (
	"maps"
	"slices"
)

// Column describes a column of a table, from the schema.
type Column struct {
	Name string
	// Optional is set if the column may hold nothing. Otherwise a row that lacks it holds 0,
	// false or an empty text.
	Optional  bool
	Ephemeral bool
	// Owns is the table whose rows exist only as long as a row of this column's table refers
	// to them here; "" for a column without such references.
	Owns string
}

// Tables returns the names of the tables of the schema, sorted.
func (x *Index) Tables() []string { return slices.Sorted(maps.Keys(x.schema)) }

// Columns returns the columns of a table, sorted by name; none for an unknown table.
func (x *Index) Columns(table string) []Column {
	schema := x.schema[table]
	var list []Column
	for _, name := range slices.Sorted(maps.Keys(schema.Columns)) {
		c := schema.Columns[name]
		list = append(list, Column{Name: name, Optional: !c.Type.required(), Ephemeral: c.Ephemeral, Owns: x.owned(c.Type)})
	}
	return list
}

// Identity returns the columns whose values no two rows of a table share; none if the
// schema names no such columns.
func (x *Index) Identity(table string) []string {
	if indexes := x.schema[table].Indexes; len(indexes) > 0 {
		return indexes[0]
	}
	return nil
}

// owned returns the table whose rows a type's strong references keep alive.
func (x *Index) owned(kind columnType) string {
	for _, base := range []baseType{kind.Value, kind.Key} {
		if base.RefTable != "" && base.RefType != "weak" && !x.schema[base.RefTable].Root {
			return base.RefTable
		}
	}
	return ""
}
