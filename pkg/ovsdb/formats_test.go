package ovsdb

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestReferencesAreNotInStrings checks which rows a value refers to.
func TestReferencesAreNotInStrings(t *testing.T) {
	const a, b = "5c84487c-9c32-422f-b7a2-8d8fea123188", "91b7b2e1-0ca3-480c-b1b4-747e7e9ec650"
	for text, want := range map[string][]string{
		a: {a}, "[" + a + ", " + b + "]": {a, b}, `{"` + a + `"=x, y=` + b + `}`: {b}, `"` + a + `"`: nil, `"\"" ` + a: {a},
		`"` + a: nil, "x" + a: nil, a + "0": nil, "[]": nil, "": nil,
	} {
		expect.Equal(t, References(text), want, text)
	}
}

// TestTextsThatAreNoTables checks what is not taken for rows: rows without UUIDs, or of which a part is not there.
func TestTextsThatAreNoTables(t *testing.T) {
	for _, text := range []string{
		"", "name,ports\nsw0,[]\n", "name                : sw0\n", "_uuid name\nno rule\n", "_uuid name\n----- ----\x00",
		`{"data":[[["uuid","x"]]],"headings":["_uuid"]}`, `{"data":[["a","b"]],"headings":["_uuid"]}`,
		`{"data":`, "_uuid,name\n5c84487c-9c32-422f-b7a2-8d8fea123188\n", "_uuid is a column\n", "<table border=1>\n",
		"5c84487c-9c32-422f-b7a2-8d8fea123188\nsw0\n",
	} {
		if listing, ok := AsListing(text); ok && listing != "" && strings.TrimSpace(listing) != "" {
			t.Errorf("%q: %q", text, listing)
		}
	}
}

// FuzzAsListing checks that any text is taken or refused, and that a listing stays as it is.
func FuzzAsListing(f *testing.F) {
	f.Add("_uuid                : 5c84487c-9c32-422f-b7a2-8d8fea123188\nname : [\"set\",[]]\n")
	f.Add("_uuid,name\n5c84487c-9c32-422f-b7a2-8d8fea123188,\"a \"\"b\"\"\"\n")
	f.Add("_uuid                                name\n------------------------------------ ----\n5c84487c-9c32-422f-b7a2-8d8fea123188 sw0\n")
	f.Add(`{"data":[[["uuid","5c84487c-9c32-422f-b7a2-8d8fea123188"],["map",[["a",1]]]]],"headings":["_uuid","b"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		listing, ok := AsListing(text)
		if !ok || listing == "" {
			return
		}
		again, ok := AsListing(listing)
		if !ok || again != listing {
			t.Errorf("%q: %q, and then %q", text, listing, again)
		}
	})
}
