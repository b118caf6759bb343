package file

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

func TestUndamagedFileIsCopiedByteForByte(t *testing.T) {
	file, live := standalone(t)
	dst, info, remarks := standaloneFile(t, file)
	noRemarks(t, remarks)
	if !bytes.Equal(read(t, dst), read(t, file)) {
		t.Error("the copy differs from the file")
	}
	if info.Name != ovsdb.OVS || info.Form != FormStandalone || info.Records != 9 || info.Version == "" {
		t.Errorf("info = %+v", info)
	}
	if stat, err := os.Stat(dst); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("the copy's mode is %v (%v), not 0600", stat.Mode(), err)
	}
	differ(t, served(t, dst), live)
}

// anonymise replaces text inside records, and in headers, as `sos clean` does: it
// leaves lengths and sums as they were.
var anonymise = strings.NewReplacer(
	"worker1.example.com", "host0.obfuscateddomain0.com",
	"10.0.0.1", "100.64.0.1", "10.0.0.2", "100.64.0.22",
	"aa:bb:cc:dd:ee:02", "53:4f:53:02:02:02", "aa:bb:cc:dd:ee:03", "53:4f:53:03:03:03",
	"aa:bb:cc:dd:ee:01", "53:4f:53:01:01:01",
)

func TestAnonymisedRecordsAreServed(t *testing.T) {
	file, live := standalone(t)
	cleaned := write(t, []byte(anonymise.Replace(string(read(t, file)))))
	want := anonymise.Replace(live)

	s := serve(t, cleaned)
	if s.content(t, ovsdb.OVS) == want {
		t.Fatal("ovsdb-server serves the anonymised file wholly: this test shows nothing")
	}
	s.stop()
	cleaned = write(t, []byte(anonymise.Replace(string(read(t, file)))))
	dst, info, remarks := standaloneFile(t, cleaned)
	differ(t, served(t, dst), want)
	wantRemark(t, remarks, "5 records rewritten", "all of them are served")
	if info.Damaged != 5 || !strings.Contains(info.Damage, "record 3 at offset") {
		t.Errorf("info = %+v", info)
	}
}

// mangle changes a UUID as sos up to 4.8.0 does: it replaces the middle as if it were a
// MAC address, always with the same text for the same middle.
func mangle(text string) string {
	known := map[string]string{}
	uuid := regexp.MustCompile(`([0-9a-f]{3})([0-9a-f]{5}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})(-[0-9a-f]{12})`)
	return uuid.ReplaceAllStringFunc(text, func(found string) string {
		p := uuid.FindStringSubmatch(found)
		if known[p[2]] == "" {
			n := byte(len(known))
			known[p[2]] = "53:4f:53:" + string(hexOf(n)) + ":a7:" + string(hexOf(n^0x55))
		}
		return p[1] + known[p[2]] + p[3]
	})
}

func hexOf(b byte) []byte { return []byte{"0123456789abcdef"[b>>4], "0123456789abcdef"[b&15]} }

func TestMangledUUIDsKeepRowsApartAndTogether(t *testing.T) {
	file, live := standalone(t)
	dst, _, remarks := standaloneFile(t, write(t, []byte(mangle(string(read(t, file))))))
	wantRemark(t, remarks, "UUIDs rewritten as MAC addresses")

	// The first three and last twelve digits of each UUID stay: they identify
	// the row in both files.
	name := regexp.MustCompile(`([0-9a-f]{3})[0-9a-f]{5}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}(-[0-9a-f]{12})`)
	sorted := func(content string) string {
		rows := strings.Split(name.ReplaceAllString(content, "$1$2"), "\n")
		return strings.Join(rows, "\n")
	}
	differ(t, sorted(served(t, dst)), sorted(live))
}

func TestTornTailKeepsAllWholeRecords(t *testing.T) {
	file, _ := standalone(t)
	parts := split(t, file)
	whole, last := parts[:len(parts)-1], parts[len(parts)-1]
	before := served(t, write(t, whole...))
	newline := bytes.IndexByte(last, '\n') + 1
	for _, cut := range []int{newline + 1, newline + 20, len(last) - 3} {
		dst, _, remarks := standaloneFile(t, write(t, append(whole[:len(whole):len(whole)], last[:cut])...))
		differ(t, served(t, dst), before)
		wantRemark(t, remarks, "record 9, the last one", "cut off")
	}
	// Part of a header line is not a record.
	dst, _, remarks := standaloneFile(t, write(t, append(whole[:len(whole):len(whole)], last[:30])...))
	differ(t, served(t, dst), before)
	wantRemark(t, remarks, "30 bytes", "belong to no record")
}

// TestDestroyedRecordLosesOnlyItsContent reads records that delete, change and refer to
// the rows of an earlier, destroyed record. ovsdb-server itself would stop there.
func TestDestroyedRecordLosesOnlyItsContent(t *testing.T) {
	file, _ := standalone(t)
	for number, gone := range map[int]struct{ lost, kept string }{
		5: {`"vx"`, `"p2"`}, // inserts vx, which record 8 deletes
		6: {`"p1"`, `"p2"`}, // inserts p1, which record 7 changes
		4: {`"br-int`, `worker1.example.com`},
	} {
		for what, destroy := range map[string]func([]byte) []byte{
			"quote lost":   func(r []byte) []byte { return bytes.Replace(r, []byte(`":{`), []byte(`:{`), 1) },
			"overwritten":  func(r []byte) []byte { return append(bytes.Repeat([]byte{0xff}, len(r)-1), '\n') },
			"cut in place": func(r []byte) []byte { return r[:len(r)-10] },
		} {
			parts := split(t, file)
			parts[number-1] = destroy(parts[number-1])
			dst, info, remarks := standaloneFile(t, write(t, parts...))
			content := served(t, dst)
			if strings.Contains(content, gone.lost) && what != "overwritten" || !strings.Contains(content, gone.kept) ||
				number > 4 && !strings.Contains(content, `"br-int"`) {
				t.Errorf("record %d, %s: want %s gone and %s kept; remarks %q in\n%s",
					number, what, gone.lost, gone.kept, remarks, content)
			}
			wantRemark(t, remarks, "a record in the middle is lost")
			if info.Damaged == 0 {
				t.Errorf("record %d, %s: Inspect saw no damage", number, what)
			}
		}
	}
}

func TestGarbageBetweenRecordsIsLeftOut(t *testing.T) {
	file, live := standalone(t)
	parts := split(t, file)
	garbage := append(bytes.Repeat([]byte{0}, 5000), "OVSDB JSON x\n"...)
	parts[4] = append(parts[4], garbage...)
	dst, _, remarks := standaloneFile(t, write(t, parts...))
	differ(t, served(t, dst), live)
	wantRemark(t, remarks, "5013 bytes", "belong to no record")

	parts = split(t, file)
	parts[4] = append(parts[4], "\n \n"...)
	dst, info, remarks := standaloneFile(t, write(t, parts...))
	differ(t, served(t, dst), live)
	noRemarks(t, remarks) // ovsdb-server stops at blank lines, but nothing is lost
	expect.Equal(t, info.Damaged, 0, "info", info)
}

func TestGzipIsReadThrough(t *testing.T) {
	file, live := standalone(t)
	packed := files.Gzip(t, read(t, file))
	dst, info, remarks := standaloneFile(t, write(t, packed))
	noRemarks(t, remarks)
	if !info.Gzip {
		t.Error("Info.Gzip is false")
	}
	differ(t, served(t, dst), live)

	dst, info, remarks = standaloneFile(t, write(t, packed[:len(packed)-4]))
	differ(t, served(t, dst), live)
	wantRemark(t, remarks, "gzip stream breaks off")
	expect.Equal(t, info.Damaged, 1, "info", info)
}

func TestErrorsNameTheNextStep(t *testing.T) {
	schema := rec("JSON", `{"name":"X","version":"1.0.0","tables":{}}`)
	txn := rec("JSON", `{"_date":1,"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":{"a":["map",[["b","c"]]]}}}`)
	for name, c := range map[string]struct {
		file []byte
		is   error
		says string
	}{
		"empty":              {nil, ErrEmpty, "collect it again"},
		"empty in gzip":      {files.Gzip(t, nil), ErrEmpty, "collect it again"},
		"xz":                 {[]byte("\xfd7zXZ\x00more"), ErrNotDatabase, "xz -d"},
		"text":               {[]byte("ovs-vsctl: connection failed\n"), ErrNotDatabase, `"ovs-vsctl: connection failed"`},
		"text in gzip":       {files.Gzip(t, []byte("hello\n")), ErrNotDatabase, `"hello", inside gzip`},
		"binary":             {[]byte("\x01\x02\x03"), ErrNotDatabase, "01 02 03"},
		"cut in gzip header": {files.Gzip(t, schema)[:5], ErrNotDatabase, "gzip"},
		"tail":               {txn[60:], ErrTailed, "--all-logs"},
		"tail with records":  {append(txn[60:len(txn):len(txn)], txn...), ErrTailed, "--all-logs"},
		"tail cut at header": {txn, ErrTailed, "--all-logs"},
		"cluster tail":       {rec("CLUSTER", `{"commit_index":2}`), ErrTailed, "--all-logs"},
		"broken schema":      {bytes.Replace(schema, []byte(`"X"`), []byte(`"X`), 1), ErrSchema, "collect"},
		"schema cut":         {schema[:len(schema)-9], ErrSchema, "collect"},
	} {
		_, err := Inspect(t.Context(), bytes.NewReader(c.file))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Inspect returns %v; want %v, with %s", name, err, c.is, c.says)
		}
		dir := t.TempDir()
		dst := filepath.Join(dir, "dst")
		_, _, err = Standalone(t.Context(), write(t, c.file), dst)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), "made.db") {
			t.Errorf("%s: Standalone returns %v; want %v, with the file's name", name, err, c.is)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

func TestCancelledRunLeavesTheOldFile(t *testing.T) {
	schema := rec("JSON", `{"name":"X","version":"1.0.0","tables":{}}`)
	dir := t.TempDir()
	dst := filepath.Join(dir, "dst")
	if err := os.WriteFile(dst, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Standalone(ctx, write(t, schema), dst); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	left, _ := os.ReadDir(dir)
	if string(read(t, dst)) != "old" || len(left) != 1 {
		t.Errorf("dst is %q, beside it %v", read(t, dst), left)
	}
}

func TestInspectReadsRealForms(t *testing.T) {
	file, _ := standalone(t)
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := Inspect(t.Context(), in)
	if err != nil || info.Damaged != 0 || info.Records != 9 || info.Name != ovsdb.OVS {
		t.Errorf("info = %+v, %v", info, err)
	}
	if want := strings.TrimSpace(ovs.Run(t, "ovsdb-tool", "db-version", file)); info.Version != want {
		t.Errorf("version %q, ovsdb-tool prints %q", info.Version, want)
	}
}

// TestSchemaHeadIsAsOVSDBToolPrintsIt compares ParseSchema with ovsdb-tool.
func TestSchemaHeadIsAsOVSDBToolPrintsIt(t *testing.T) {
	needTools(t)
	head, err := ParseSchema(ovsSchema, read(t, ovsSchema))
	if err != nil {
		t.Fatal(err)
	}
	for command, got := range map[string]string{"schema-name": head.Name, "schema-version": head.Version} {
		if want := strings.TrimSpace(ovs.Run(t, "ovsdb-tool", command, ovsSchema)); got != want {
			t.Errorf("%s: %q, ovsdb-tool prints %q", command, got, want)
		}
	}
	for name, text := range map[string]string{"empty": "", "not a schema": `{"name":"X"}`} {
		if _, err := ParseSchema("/some/path", []byte(text)); err == nil || !strings.Contains(err.Error(), "/some/path") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUpgradeConvertsToANewerSchemaOnly(t *testing.T) {
	file, live := standalone(t)
	upgrade := func(schema string) (string, error) {
		parsed, err := ParseSchema(schema, read(t, schema))
		if err != nil {
			t.Fatal(err)
		}
		return Upgrade(t.Context(), local, file, parsed)
	}
	schema := read(t, ovsSchema)
	version := regexp.MustCompile(`"version": "[^"]*"`)
	at := func(v string) string {
		text := version.ReplaceAll(schema, []byte(`"version": "`+v+`"`))
		return write(t, regexp.MustCompile(`"cksum": "[^"]*",`).ReplaceAll(text, nil))
	}
	original := read(t, file)
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, older := range []string{ovsSchema, at("7.99.99")} {
		if remark, err := upgrade(older); err != nil || remark != "" {
			t.Errorf("%s: %q, %v", older, remark, err)
		}
		if !bytes.Equal(read(t, file), original) {
			t.Fatalf("%s changed the file", older)
		}
	}
	remark, err := upgrade(at("10.0.0"))
	if err != nil || !strings.Contains(remark, "to 10.0.0") {
		t.Fatalf("%q, %v", remark, err)
	}
	if got := ovs.Run(t, "ovsdb-tool", "db-version", file); strings.TrimSpace(got) != "10.0.0" {
		t.Errorf("version after it: %s", got)
	}
	if stat, err := os.Stat(file); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("its mode is now %v (%v)", stat.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*.tmp*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	differ(t, served(t, file), live)

	other := write(t, []byte(`{"name":"OVN_Northbound","version":"99.0.0","tables":{}}`))
	if _, err := upgrade(other); err == nil || !strings.Contains(err.Error(), "schema of OVN_Northbound") {
		t.Errorf("another database's schema: %v", err)
	}
}
