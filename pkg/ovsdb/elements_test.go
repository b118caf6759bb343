package ovsdb

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestElementsHaveTheNamesOfRows(t *testing.T) {
	const uuid = "11111111-2222-3333-4444-555555555555"
	row := ParseRow("", map[string]json.RawMessage{
		"atom": json.RawMessage(`"x"`), "set": json.RawMessage(`["set",["b","a"]]`), "empty": json.RawMessage(`["set",[]]`),
		"map":       json.RawMessage(`["map",[["k","v"],["a",["uuid","` + uuid + `"]]]]`),
		"reference": json.RawMessage(`["uuid","` + uuid + `"]`),
	})
	names := Names{uuid: "eth0"}
	for column, want := range map[string][]Element{
		"atom": {{"", "x"}}, "set": {{"", "a"}, {"", "b"}}, "empty": nil, "absent": nil,
		"map": {{"a", "eth0"}, {"k", "v"}}, "reference": {{"", "eth0"}},
	} {
		if got := names.Elements(row, column); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", column, got, want)
		}
	}
	if got := row.References(); len(got) != 2 || got["map"][0] != uuid || got["reference"][0] != uuid {
		t.Errorf("references: %v", got)
	}
}
