package file

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestHeaderLineIsFoundBehindACutRecordAndNotInJSON(t *testing.T) {
	sum := strings.Repeat("a", 40)
	for line, want := range map[string]bool{
		"OVSDB JSON 7 " + sum + "\n":                     true,
		"OVSDB CLUSTER 7 " + sum + "\n":                  true,
		`{"Bridge":{"na` + "OVSDB JSON 7 " + sum + "\n":  true,
		"OVSDB JSON 7 host0\n":                           true, // an anonymised sum
		"OVSDB JSON 0 " + sum + "\n":                     false,
		"OVSDB JSON -7 " + sum + "\n":                    false,
		"OVSDB JSON 7  " + sum + "\n":                    false,
		"OVSDB JSON 7 " + sum:                            false,
		"OVSDB RAFT 7 " + sum + "\n":                     false,
		"OVSDB JSON 99999999999999999999 " + sum + "\n":  false,
		`{"a":"OVSDB JSON 7 ` + sum + `"}` + "\n":        false,
		`{"a":"` + "OVSDB JSON 7 " + sum + `\n"}` + "\n": false,
	} {
		if _, got := parseHeader([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// TestRecordsAreSplitAcrossReads places a header line at and across the end of the
// scanner's buffer.
func TestRecordsAreSplitAcrossReads(t *testing.T) {
	for pad := 65536 - 200; pad < 65536+20; pad++ {
		first := rec("JSON", `{"a":"`+strings.Repeat("x", pad)+`"}`)
		file := append(first, rec("JSON", `{"b":1}`)...)
		scan := newScanner(t.Context(), bytes.NewReader(file))
		if _, _, err := scan.readToHeader(0); err != nil {
			t.Fatal(err)
		}
		a, err := scan.next()
		if err != nil || !a.intact || a.last {
			t.Fatalf("pad %d: first record %+v, %v", pad, a, err)
		}
		b, err := scan.next()
		if err != nil || !b.intact || !b.last || b.offset != int64(len(first)) {
			t.Fatalf("pad %d: second record %+v, %v", pad, b, err)
		}
	}
}

// TestLongGarbageIsNotKept reads a short record that is followed by a large amount of
// text.
func TestLongGarbageIsNotKept(t *testing.T) {
	file := io.MultiReader(bytes.NewReader(rec("JSON", `{"name":"X","version":"1.0.0","tables":{}}`)),
		io.LimitReader(endless{}, 64<<20))
	src, err := newSource(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if src.info.Damaged != 1 || cap(src.scan.body) > 4<<20 {
		t.Errorf("%d places, buffer of %d bytes", src.info.Damaged, cap(src.scan.body))
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }
