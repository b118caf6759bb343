package ovsdb

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
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

// Records are found whatever the reader hands out at a time, and whether a
// header stands across the end of its buffer or not.
func TestRecordsAreSplitAcrossReads(t *testing.T) {
	for pad := 65536 - 200; pad < 65536+20; pad++ {
		first := rec("JSON", `{"a":"`+strings.Repeat("x", pad)+`"}`)
		file := append(first, rec("JSON", `{"b":1}`)...)
		scan := newScanner(bytes.NewReader(file))
		if _, err := scan.skip(); err != nil {
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

// A record that announces little and is followed by much is not held whole.
func TestUnboundedGarbageIsNotKept(t *testing.T) {
	file := io.MultiReader(bytes.NewReader(rec("JSON", `{"name":"X","version":"1.0.0","tables":{}}`)),
		io.LimitReader(endless{}, 64<<20))
	src, err := newSource(file)
	if err != nil {
		t.Fatal(err)
	}
	if src.info.Damaged != 1 || cap(src.scan.body) > 4<<20 {
		t.Errorf("%d places, buffer of %d bytes", src.info.Damaged, cap(src.scan.body))
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzInspect(f *testing.F) {
	schema := rec("JSON", `{"name":"X","version":"1.0.0","tables":{"T":{"columns":{"a":{"type":"string"}}}}}`)
	txn := rec("JSON", `{"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":{"a":"b"}},"_date":1}`)
	cluster := rec("CLUSTER", `{"server_id":"s","name":"X","prev_index":1,"prev_data":[{"name":"X","tables":{}},{}]}`)
	entry := rec("CLUSTER", `{"term":1,"index":2,"data":[null,{"T":{}}]}`)
	f.Add(append(schema, txn...))
	f.Add(append(schema, txn[:len(txn)-9]...))
	f.Add(append(append(cluster, entry...), rec("CLUSTER", `{"commit_index":2}`)...))
	f.Add(append(cluster, "garbage\n"...))
	f.Add([]byte("OVSDB JSON 1 \n"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, file []byte) {
		info, err := Inspect(bytes.NewReader(file))
		again, err2 := Inspect(iotest.OneByteReader(bytes.NewReader(file)))
		if (err == nil) != (err2 == nil) || info.Records != again.Records || info.Damaged != again.Damaged {
			t.Fatalf("the size of reads matters: %+v %v, %+v %v", info, err, again, err2)
		}
		dst := t.TempDir() + "/dst"
		_, remarks, err := Standalone(t.Context(), write(t, file), dst)
		if err != nil {
			return
		}
		// What was written is whole, and stays as it is.
		fresh, err := Inspect(bytes.NewReader(read(t, dst)))
		if err != nil || fresh.Damaged != 0 || fresh.Form != FormStandalone {
			t.Fatalf("from %q (%q): %+v, %v", file, remarks, fresh, err)
		}
	})
}
