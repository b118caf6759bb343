package file

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"

	"ovs-offline/test/oracle/captures"
)

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
	f.Add([]byte("OVSDB JSON 9223372036854775807 00\n{}\n"))
	f.Add(append(schema, rec("JSON", `{"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":{"a":["uuid","0190fe17-d1ae-7091-a034-22ade2121dc0"]}},"_is_diff":true}`)...))
	captures.Captured(f, "*.db", 16384, func(content []byte) { f.Add(content) })
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, file []byte) {
		info, err := Inspect(t.Context(), bytes.NewReader(file))
		again, err2 := Inspect(t.Context(), iotest.OneByteReader(bytes.NewReader(file)))
		if (err == nil) != (err2 == nil) || info.Records != again.Records || info.Damaged != again.Damaged {
			t.Fatalf("the result depends on the size of reads: %+v %v, %+v %v", info, err, again, err2)
		}
		dst := t.TempDir() + "/dst"
		_, remarks, err := Standalone(t.Context(), write(t, file), dst)
		if err != nil {
			return
		}
		// The written file is undamaged, and a second run does not change it.
		fresh, err := Inspect(t.Context(), bytes.NewReader(read(t, dst)))
		if err != nil || fresh.Damaged != 0 || fresh.Form != FormStandalone {
			t.Fatalf("from %q (%q): %+v, %v", file, remarks, fresh, err)
		}
		again2 := t.TempDir() + "/again"
		if _, remarks, err := Standalone(t.Context(), dst, again2); err != nil || len(remarks) > 0 ||
			!bytes.Equal(read(t, dst), read(t, again2)) {
			t.Fatalf("from %q: the second run changes it: %q, %v", file, remarks, err)
		}
	})
}

// FuzzRebuild rebuilds a database of two transactions. Its small schema has every kind
// of rule: indexes, a maximum of rows, required references.
func FuzzRebuild(f *testing.F) {
	const schema = `{"name":"X","version":"1.0.0","tables":{
		"R":{"isRoot":true,"maxRows":1,"columns":{"t":{"type":{"key":{"type":"uuid","refTable":"T"},"min":0,"max":"unlimited"}}}},
		"T":{"indexes":[["n"]],"columns":{"n":{"type":"string"},"m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
			"o":{"type":{"key":{"type":"uuid","refTable":"T"}}},"w":{"type":{"key":"string","value":{"type":"uuid","refTable":"T","refType":"weak"},"min":0,"max":5}}}}}}`
	one := strings.NewReplacer("A", "0190fe17-d1ae-7091-a034-22ade2121dc0", "B", "0190fe17-d1ae-7091-a034-22ade2121dc1")
	f.Add(one.Replace(`{"R":{"A":{"t":["set",[["uuid","B"]]]}},"T":{"B":{"n":"x","o":["uuid","B"]}}}`),
		one.Replace(`{"T":{"B":{"n":"y","m":["map",[["a","b"]]]},"A":null},"_is_diff":true}`))
	f.Add(one.Replace(`{"T":{"A":{"n":"x","o":["uuid","B"]},"B":{"n":"x","o":["uuid","A"]}}}`),
		one.Replace(`{"T":{"A":{"w":["map",[["k",["uuid","B"]]]]}},"R":{"A":{},"B":{}}}`))
	f.Add(`{"T":null}`, `{"T":{"":{"n":["set",[[],{}]]}},"_is_diff":true}`)
	captures.Captured(f, "conf.db", 4096, func(content []byte) { f.Add(string(content), "{}") })
	f.Fuzz(func(t *testing.T, first, second string) {
		out, err := newOutput(t.TempDir() + "/db")
		if err != nil {
			t.Fatal(err)
		}
		defer out.discard()
		for _, body := range []string{strings.ReplaceAll(schema, "\n", ""), first, second} {
			if err := out.add([]byte(strings.ReplaceAll(body, "\n", " "))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := rebuild(t.Context(), out, nil, true); err != nil {
			t.Fatal(err)
		}
		if err := out.buf.Flush(); err != nil {
			t.Fatal(err)
		}
		info, err := Inspect(t.Context(), bytes.NewReader(read(t, out.file.Name())))
		if err != nil || info.Damaged > 0 || info.Records > 2 {
			t.Errorf("%q and %q add up to %+v, %v", first, second, info, err)
		}
	})
}
