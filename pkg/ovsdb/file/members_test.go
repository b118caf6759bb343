package file

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestMembersAreThoseOfAParser compares memberFinder with encoding/json, with the
// text written in pieces of every size.
func TestMembersAreThoseOfAParser(t *testing.T) {
	for _, text := range []string{
		`{"Bridge":{"a":{"name":"x"}},"Port":{"b":{}},"_is_diff":true,"Chassis":[1,2]}`,
		` { "Port" : { "Bridge" : {"c":1} , "d" : [ {"Bridge":2} ] } , "Bridge" : { } , "_is_diff" : false } `,
		`{"Port":"Bridge","x":"\"Bridge\":{","Bridge":{"name":"}],\"\\","y":["a,b",{}]},"_date":12345}`,
		`{"Port":{"p":{"name":"\\"}},"Bridge":{"b":{"name":"\\\""}}}`,
		`{"Bridge":{"a":1},"Bridge":{"b":2},"` + strings.Repeat("B", 2*maxKey) + `":1}`,
		`{}`, `{"Port":{}}`, `{"Bridge":null}`, `{"Bridge":-1.5e3,"_is_diff":true}`,
	} {
		var all map[string]any
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		for _, key := range []string{"Bridge", "_is_diff"} {
			if v, found := all[key]; found {
				want[key] = v
			}
		}
		const before = "text before it "
		for size := 1; size <= len(text); size++ {
			f := newMemberFinder(int64(len(before)), func(key string) bool { return key == "Bridge" || key == "_is_diff" })
			for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := f.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			object, err := f.object(strings.NewReader(before + text))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			if err := json.Unmarshal(object, &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s in pieces of %d: %v %v", text, size, got, err)
			}
		}
	}
}

func BenchmarkMemberFinder(b *testing.B) {
	text := bytes.Repeat([]byte(`"01234567-1234-4abc-8def-0123456789ab":{"name":"port","external_ids":["map",[["key","a value"]]]},`), 10000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f := newMemberFinder(0, func(string) bool { return false })
		if _, err := f.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
