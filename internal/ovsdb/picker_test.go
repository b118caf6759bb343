package ovsdb

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestPicker: what is picked out of an object is what a parser finds there, in
// however small pieces it comes.
func TestPicker(t *testing.T) {
	for _, text := range []string{
		`{"Bridge":{"a":{"name":"x"}},"Port":{"b":{}},"_is_diff":true,"Chassis":[1,2]}`,
		` { "Port" : { "Bridge" : {"c":1} , "d" : [ {"Bridge":2} ] } , "Bridge" : { } , "_is_diff" : false } `,
		`{"Port":"Bridge","x":"\"Bridge\":{","Bridge":{"name":"}],\"\\","y":["a,b",{}]},"_date":12345}`,
		`{"Port":{"p":{"name":"\\"}},"Bridge":{"b":{"name":"\\\""}}}`,
		`{}`, `{"Port":{}}`, `{"Bridge":null}`, `{"Bridge":-1.5e3,"_is_diff":true}`,
	} {
		var all, want map[string]any
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		want = map[string]any{}
		for _, key := range []string{"Bridge", "_is_diff"} {
			if v, there := all[key]; there {
				want[key] = v
			}
		}
		for size := 1; size <= len(text); size++ {
			p := &picker{want: func(key string) bool { return key == "Bridge" || key == "_is_diff" }}
			for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := p.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]any{}
			if err := json.Unmarshal(p.take(), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s in pieces of %d: %v %v", text, size, got, err)
			}
		}
	}
}
