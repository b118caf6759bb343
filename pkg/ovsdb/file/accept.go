package file

import (
	"encoding/json"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// ovsdb-server stops at a transaction with a table or a column that the schema does not have, or
// with a value that the column can't hold, or that refers to no row. Only a damaged record has such values.

var uuidText = lazyregexp.New(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// strip removes from the change of a row what ovsdb-server refuses, and counts it.
func (db *database) strip(id rowID, change columns) {
	for name, value := range change {
		column, known := db.schema[id.table].Columns[name]
		if !known || !column.Type.accepts(value) {
			db.refused++
			delete(change, name)
		}
	}
}

// checkInserted counts references of the rows that a transaction inserted to rows that do not
// exist after it. A later transaction may delete such a row.
func (db *database) checkInserted() {
	for _, id := range db.inserted {
		for name, value := range db.tables[id.table][id.uuid] {
			kind := db.schema[id.table].Columns[name].Type
			if !kind.refers() {
				continue
			}
			for _, element := range parseElements(value, kind.isMap()) {
				if kind.Key.RefType != "weak" && !db.resolves(kind.Key, element.key) || kind.isMap() && kind.Value.RefType != "weak" && !db.resolves(kind.Value, element.value) {
					db.refused++
				}
			}
		}
	}
	db.inserted = db.inserted[:0]
}

// accepts reports whether a column can hold a value in the notation of RFC 7047, 5.1. It does not
// count the elements: a difference may have more of them than the column.
func (t columnType) accepts(value json.RawMessage) bool {
	tag := ""
	if parts := []json.RawMessage(nil); json.Unmarshal(value, &parts) == nil {
		if len(parts) != 2 || json.Unmarshal(parts[0], &tag) != nil {
			return false
		}
	}
	if t.isMap() != (tag == "map") || tag != "" && !slices.Contains([]string{"map", "set", "uuid"}, tag) {
		return false
	}
	for _, element := range parseElements(value, t.isMap()) {
		if !t.Key.accepts(element.key) || t.isMap() && !t.Value.accepts(element.value) {
			return false
		}
	}
	return true
}

// accepts reports whether a text is an atom of the type.
func (b baseType) accepts(atom string) bool {
	var value any
	if json.Unmarshal([]byte(atom), &value) != nil {
		return false
	}
	ok := false
	switch v := value.(type) {
	case string:
		ok = b.Type == "string"
	case bool:
		ok = b.Type == "boolean"
	case float64:
		ok = b.Type == "real" || b.Type == "integer" && !strings.ContainsAny(atom, ".eE") &&
			(b.MinInteger == nil || v >= *b.MinInteger) && (b.MaxInteger == nil || v <= *b.MaxInteger)
	case []any:
		ok = b.Type == "uuid" && len(v) == 2 && v[0] == "uuid"
		if ok {
			text, isText := v[1].(string)
			ok = isText && uuidText.MatchString(text)
		}
	}
	if len(b.Enum) == 0 || !ok {
		return ok
	}
	return slices.ContainsFunc(parseElements(b.Enum, false), func(element element) bool { return element.key == atom })
}
