package ovsdb

import (
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

func FuzzListing(f *testing.F) {
	for _, pattern := range []string{"*list_interface", "*list_Open_vSwitch", "*list_bridge"} {
		captures.Captured(f, pattern, 4096, func(content []byte) { f.Add(string(content)) })
	}
	f.Add("_uuid : x\n_uuid               : 0190fe17-d1ae-7091-a034-22ade2121dc0\r\na: b\nname                : \"\x1b[1m\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		records, err := Listing(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, r := range records {
			size += len(r.UUID)
			for _, v := range r.Columns {
				size += len(v.Column) + len(v.Text)
				if strings.ContainsAny(v.Column, " :-\n") || v.Column[0] == '-' || strings.Contains(v.Text, "\n") {
					t.Errorf("column %q: %q", v.Column, v.Text)
				}
			}
		}
		if size > len(text) {
			t.Errorf("%d bytes were made of %d", size, len(text))
		}
	})
}
