package ovsdb

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"ovs-offline/test/check/expect"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// TestRowsAreThoseOfTheLibrary compares values with what libovsdb parses.
func TestRowsAreThoseOfTheLibrary(t *testing.T) {
	const uuid = `["uuid","01234567-89ab-4cde-8f01-23456789abcd"]`
	for _, text := range []string{`"x"`, `""`, `"\u001b\"\\"`, `7`, `-1.5e3`, `true`, uuid, `["named-uuid","x"]`,
		`["set",[]]`, `["set",["a","b"]]`,
		`["set",[` + uuid + `]]`, `["set",[1,2]]`, `0`, `123456789012345`, `12345678901234567`, `false`, `"ä"`,
		`"a \"b\" \\"`, `"\/"`, `"\\\""`, `["set", [ "a" , "\n" ] ]`, `["set",[true,"a]],["]]`,
		`["map",[["a",["uuid","x"]],["a","twice"]]]`, `["map",[]]`, `["map",[["a","b"],["c","d"]]]`,
		`["map",[[` + uuid + `,1]]]`} {
		var want rfc.Row
		if err := json.Unmarshal([]byte(`{"v":`+text+`}`), &want); err != nil {
			t.Fatal(err)
		}
		if got := ParseRow("", map[string]json.RawMessage{"v": json.RawMessage(text)}); !reflect.DeepEqual(got.columns,
			want) {
			t.Errorf("%s: %#v, want %#v", text, got.columns, want)
		}
	}
}

// TestOtherNotationIsLeftOut parses values on some of which libovsdb panics.
func TestOtherNotationIsLeftOut(t *testing.T) {
	for _, text := range []string{`[]`, `["set"]`, `["set",7]`, `["set",[[]]]`, `["set",[["uuid",7]]]`, `["uuid"]`,
		`["uuid",7]`, `["map",[["a"]]]`, `["map",[7]]`,
		`["map",[["a",{}]]]`, `["x","y"]`, `[1,2]`, `null`, `{}`, `{"a":1}`, `x`, ``, `["set",[null]]`} {
		row := ParseRow("", map[string]json.RawMessage{"v": json.RawMessage(text), "w": json.RawMessage(`"kept"`)})
		expect.Equal(t, slices.Sorted(maps.Keys(row.columns)), []string{"w"}, text, row.columns)
	}
}

func FuzzParseRow(f *testing.F) {
	for _, text := range []string{`["map",[["a","b"]]]`, `["set",[["uuid","x"],1]]`, `[]`, `"x"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var parsed any
		want, wantOK := any(nil), false
		if json.Unmarshal(text, &parsed) == nil {
			want, wantOK = parseValue(parsed)
		}
		if got, ok := valueOf(text); ok != wantOK || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v, want %#v, %v", text, got, ok, want, wantOK)
		}
		row := ParseRow("", map[string]json.RawMessage{"v": text})
		row.Strings("v")
		row.UUIDs("v")
		row.Map("v")
		row.Int("v")
	})
}
