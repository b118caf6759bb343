package file

import (
	"encoding/json"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// printValue prints a value as ovs-vsctl does (ovsdb_datum_to_string() in
// lib/ovsdb-data.c), and the reverse of parseValue. No text is the default of the type.
func printValue(text json.RawMessage, kind columnType) string {
	if len(text) == 0 && !kind.isMap() && kind.required() && !kind.holdsSeveral() {
		return defaults()[kind.Key.Type]
	}
	var printed []string
	for _, element := range parseElements(text, kind.isMap()) {
		printed = append(printed, element.print(kind.isMap()))
	}
	slices.Sort(printed)
	joined := strings.Join(printed, ", ")
	switch {
	case kind.isMap():
		return "{" + joined + "}"
	case len(printed) == 1 && !kind.holdsSeveral():
		return joined
	}
	return "[" + joined + "]"
}

// defaults are the values of columns that a record does not mention (RFC 7047, 5.2.1).
func defaults() map[string]string {
	return map[string]string{"string": `""`, "integer": "0", "real": "0", "boolean": "false", "uuid": "00000000-0000-0000-0000-000000000000"}
}

func (e element) print(isMap bool) string {
	if isMap {
		return printAtom(e.key) + "=" + printAtom(e.value)
	}
	return printAtom(e.key)
}

// word matches the strings that ovs-vsctl prints without quotes.
var word = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// printAtom prints an <atom> of RFC 7047, 5.1.
func printAtom(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	switch v := value.(type) {
	case string:
		if word.MatchString(v) && v != "true" && v != "false" {
			return v
		}
	case []any:
		if len(v) == 2 && v[0] == "uuid" {
			if uuid, ok := v[1].(string); ok {
				return uuid
			}
		}
	}
	return text
}
