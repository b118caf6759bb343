package file

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
)

// writeLarge writes a database of records transactions of 1000 rows each.
func writeLarge(tb testing.TB, path string, records int) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	put := func(body []byte) {
		w.Write(formatHeader("JSON", body))
		w.Write(body)
	}
	put([]byte(`{"name":"OVN_Southbound","version":"20.0.0","tables":{"Logical_Flow":{"columns":{"match":{"type":"string"},"actions":{"type":"string"},"priority":{"type":"integer"}}}}}` + "\n"))
	for n := range records {
		body := []byte(`{"Logical_Flow":{`)
		for i := range 1000 {
			if i > 0 {
				body = append(body, ',')
			}
			body = fmt.Appendf(body, `"%08x-%04x-4000-8000-%012x":{"match":"reg0[7] == 1 && (outport == \"lsp-%d\" && ip4 && ip4.src == 10.0.0.0/24 && tcp.dst == %d)","actions":"reg0[1] = 1; next;","priority":%d}`, n, i, n*1000+i, i, i, i)
		}
		put(append(body, "},\"_date\":1760000000000}\n"...))
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
}

// TestLargeRecordsAreReadAsStreamsAre compares files, whose large records are not
// held in memory, with streams, whose records are.
func TestLargeRecordsAreReadAsStreamsAre(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads large files")
	}
	small := filepath.Join(t.TempDir(), "sb.db")
	writeLarge(t, small, 2)
	raw, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	body := append(append([]byte(`{"Logical_Flow":{"00000000-0000-4000-8000-000000000000":{"match":"`),
		bytes.Repeat([]byte("x"), large)...), "\"}}}\n"...)
	record := append(formatHeader("JSON", body), body...)
	flipped := bytes.Clone(record)
	flipped[len(flipped)/2] = '"'
	changed := bytes.Clone(record) // as sos clean does: another length, and still JSON
	changed = append(changed[:len(changed)/2], changed[len(changed)/2+5:]...)
	longer := bytes.Replace(record, fmt.Appendf(nil, " %d ", len(body)), fmt.Appendf(nil, " %d ", len(body)+100000), 1)
	other := bytes.Replace(record, []byte("JSON"), []byte("CLUSTER"), 1)
	schema := bytes.TrimSpace(raw[bytes.IndexByte(raw, '\n')+1 : bytes.Index(raw, []byte("}\nOVSDB"))+1])
	data := bytes.TrimSpace(body)
	member := func(text string) []byte {
		text = strings.NewReplacer("SCHEMA", string(schema), "DATA", string(data)).Replace(text) + "\n"
		return append(formatHeader("CLUSTER", []byte(text)), text...)
	}
	usual := `{"server_id":"a","name":"OVN_Southbound","local_address":"tcp:127.0.0.1:6644","cluster_id":"b","prev_term":1,"prev_index":2,"prev_data":[SCHEMA,DATA],"prev_eid":"c","prev_servers":{"a":"tcp:127.0.0.1:6644"}}`
	snapshot := member(usual)
	entry := member(`{"term":1,"index":3,"eid":"x","data":[null,{"Logical_Flow":{"00000000-0000-4000-8000-000000000001":{"match":"y"}}}]}`)
	committed := member(`{"commit_index":3}`)
	tornSnapshot := bytes.Clone(snapshot)
	tornSnapshot[len(tornSnapshot)/2] = '\\'
	// A file is unpacked before it is read: outside of a sweep, a row of each form is gzip'd too.
	packedToo := []string{"a member with entries", "a member, rewritten", "and more records", "flipped", "cut off",
		"text at the end"}
	for name, parts := range map[string][][]byte{
		"a member": {snapshot}, "a member with entries": {snapshot, entry, committed},
		"a member, an entry uncommitted": {snapshot, entry},
		"a member, and text":             {snapshot, []byte("text\n"), entry, committed},
		"a member, rewritten": {bytes.Replace(snapshot, []byte("127.0.0.1"), []byte("100.0.0.123"), 2),
			entry, committed},
		"a member, with blanks": {member(strings.NewReplacer(":", " : ", ",", " , ", "[", "[ ", "]",
			" ]").Replace(usual)), entry, committed},
		"a member, nothing else":               {member(`{"prev_data":[SCHEMA,DATA],"name":"OVN_Southbound","server_id":"a","prev_index":2}`)},
		"a member, its data twice":             {member(`{"server_id":"a","name":"OVN_Southbound","prev_index":2,"prev_data":[SCHEMA,{}],"prev_data":[SCHEMA,DATA]}`)},
		"a member, its data spelled otherwise": {member(`{"server_id":"a","name":"OVN_Southbound","prev_index":2,"Prev_Data":[SCHEMA,DATA]}`)},
		"a member, its data escaped":           {member(`{"server_id":"a","name":"OVN_Southbound","prev_index":2,"prev\u005fdata":[SCHEMA,DATA]}`)},
		"a member, decoys":                     {member(`{"x":"prev_data","y":["prev_data",{"prev_data":[1,{"a":"]}\\\"["}]}],"server_id":"a","name":"OVN_Southbound","prev_index":2,"prev_data":[SCHEMA,DATA],"z":"prev_data"}`), entry, committed},
		"as it should be":                      {raw, record},
		"and more records":                     {raw, record, raw[bytes.Index(raw, []byte("}\nOVSDB"))+2:]},
		"two":                                  {raw, record, record},
		"blank lines behind":                   {raw, record, []byte("\n\n"), record},
		"text behind":                          {raw, record, []byte("text\n"), record},
		"text at the end":                      {raw, record, bytes.Repeat([]byte("text"), 1<<19)},
		"flipped":                              {raw, flipped, record}, "flipped at the end": {raw, flipped},
		"changed":           {raw, changed, record},
		"cut off":           {raw, record[:len(record)-9]},
		"too long a length": {raw, longer, record, raw[bytes.Index(raw, []byte("}\nOVSDB"))+2:]},
		"of a cluster":      {raw, other, record},
	} {
		t.Run(name, func(t *testing.T) {
			text := bytes.Join(parts, nil)
			got, gotInfo, gotRemarks := standaloneOf(t, text)
			want, wantInfo, wantRemarks := standaloneOfStream(t, text)
			if !bytes.Equal(got, want) || !reflect.DeepEqual(gotInfo, wantInfo) || !slices.Equal(gotRemarks, wantRemarks) {
				t.Errorf("%d bytes, %+v, %q\nwant %d bytes, %+v, %q", len(got), gotInfo, gotRemarks, len(want), wantInfo,
					wantRemarks)
			}
			if sweep.Whole() || slices.Contains(packedToo, name) {
				packed, packedInfo, packedRemarks := standaloneOf(t, files.Gzip(t, text))
				packedInfo.Gzip = false
				if !bytes.Equal(got, packed) || !reflect.DeepEqual(gotInfo, packedInfo) ||
					!slices.Equal(gotRemarks, packedRemarks) {
					t.Errorf("gzip'd: %d bytes, %+v, %q\nwant %d bytes, %+v, %q", len(packed), packedInfo, packedRemarks, len(got),
						gotInfo, gotRemarks)
				}
			}
			inspected, err := Inspect(t.Context(), bytes.NewReader(text))
			path := filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			f, openErr := os.Open(path)
			if openErr != nil {
				t.Fatal(openErr)
			}
			defer f.Close()
			again, againErr := Inspect(t.Context(), f)
			if !reflect.DeepEqual(inspected, again) || fmt.Sprint(err) != fmt.Sprint(againErr) {
				t.Errorf("Inspect: %+v %v\nwant %+v %v", again, againErr, inspected, err)
			}
		})
	}
}

// standaloneOfStream works like standaloneOf for a text that can be read only once.
func standaloneOfStream(t *testing.T, text []byte) ([]byte, Info, []string) {
	t.Helper()
	src, err := newSource(t.Context(), bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := newOutput(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	c := converter{from: src, out: out, stray: src.before}
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := out.buf.Flush(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(out.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return written, src.info, c.remarks()
}

func standaloneOf(t *testing.T, text []byte) ([]byte, Info, []string) {
	t.Helper()
	src := filepath.Join(t.TempDir(), "src.db")
	if err := os.WriteFile(src, text, 0o600); err != nil {
		t.Fatal(err)
	}
	info, remarks, err := Standalone(t.Context(), src, src+".copy")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(src + ".copy")
	if err != nil {
		t.Fatal(err)
	}
	return out, info, remarks
}

// BenchmarkStandalone makes a working copy of a database of either form.
func BenchmarkStandalone(b *testing.B) {
	alone := filepath.Join(b.TempDir(), "sb.db")
	writeLarge(b, alone, 200)
	clustered := alone + ".clustered"
	if out, err := exec.Command("ovsdb-tool", "create-cluster", clustered, alone,
		"tcp:127.0.0.1:6644").CombinedOutput(); err != nil {
		b.Skipf("no ovsdb-tool: %v %s", err, out)
	}
	for _, src := range []string{alone, clustered} {
		b.Run(filepath.Ext(src), func(b *testing.B) {
			b.ReportAllocs()
			info, err := os.Stat(src)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			for b.Loop() {
				if _, _, err := Standalone(context.Background(), src, alone+".copy"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
