package file

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

// programOf returns what Inspect and Standalone find, which must be the same.
func programOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path) // of which large records are not held in memory
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inspected, err := Inspect(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	_, converted, _ := standaloneFile(t, path)
	if inspected.Program != converted.Program {
		t.Errorf("Inspect finds %q, Standalone %q", inspected.Program, converted.Program)
	}
	return inspected.Program
}

// TestProgramIsTheLastStatement checks the version against databases that real servers
// wrote: changed several times, compacted, of a cluster, compressed, and torn.
func TestProgramIsTheLastStatement(t *testing.T) {
	path, _ := standalone(t)
	if got := programOf(t, path); got != "" {
		t.Errorf("a database that states no version: %q", got)
	}
	s := serve(t, path)
	s.vsctl(t, "set open . ovs_version=2.17.9", "set open . ovs_version=3.1.0",
		`set bridge br-int other_config:x="\"ovs_version\":\"9.9.9\""`)
	const want = "3.1.0"
	for what, prepare := range map[string]func() string{
		"standalone": func() string { return path },
		"compacted": func() string {
			copied := write(t, read(t, path))
			ovs.Run(t, "ovsdb-tool", "compact", copied)
			return copied
		},
		"gzip'd": func() string { return write(t, files.Gzip(t, read(t, path))) },
		"torn":   func() string { return write(t, read(t, path), []byte("OVSDB JSON 9999 0123")) },
	} {
		expect.Equal(t, programOf(t, prepare()), want, what)
	}
	member, s := clustered(t)
	s.vsctl(t, "set open . ovs_version="+want)
	expect.Equal(t, programOf(t, member), want, "clustered")
	ovs.Run(t, "ovs-appctl", "--target="+s.ctl, "cluster/change-election-timer", "Open_vSwitch",
		"1500") // a record without data
	expect.Equal(t, programOf(t, member), want, "clustered, and a later record")
}

// TestProgramOfOVN changes the option as ovn-northd does: one pair of a map.
func TestProgramOfOVN(t *testing.T) {
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovn-sbctl")
	path := filepath.Join(t.TempDir(), "sb.db")
	ovs.Run(t, "ovsdb-tool", "create", path, ovs.SBSchema)
	s := serve(t, path)
	sbctl := func(args ...string) {
		ovs.Run(t, append([]string{"ovn-sbctl", ovs.Timeout(), "--db=" + s.remote}, args...)...)
	}
	sbctl("init")
	sbctl("set", "SB_Global", ".", "options:a=b", "options:northd_internal_version=22.03.1-20.21.0-58.3", "options:z=y")
	sbctl("set", "SB_Global", ".", "options:northd_internal_version=23.03.1-20.27.0-70.6")
	expect.Equal(t, programOf(t, path), "23.03.1-20.27.0-70.6", "found")
}

// TestProgramInLargeRecords places the statement where pieces of a large record end,
// which is read in pieces of unknown length.
func TestProgramInLargeRecords(t *testing.T) {
	const statement = `"options":["map",[["northd_internal_version","23.03.1-20.27.0-70.6"]]]`
	schema := rec("JSON", `{"name":"OVN_Southbound","version":"20.27.0","tables":{"SB_Global":{"columns":{"options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}`)
	for _, before := range []int{0, 32<<10 - 60, 64<<10 - 60} {
		body := `{"Other":{"a":{"match":"` + strings.Repeat("x", before) +
			`"}},"SB_Global":{"00000000-0000-4000-8000-000000000000":{` + statement + `}},"More":{"b":{"match":"` +
			strings.Repeat("y", large) + `"}}}`
		if got := programOf(t, write(t, schema, rec("JSON", body))); got != "23.03.1-20.27.0-70.6" {
			t.Errorf("after %d bytes: %q", before, got)
		}
	}
	for size := 1; size < 3*len(statement); size++ {
		w := &pieces{finder: &programFinder{}}
		for text := []byte(strings.Repeat("x", size/2) + statement); len(text) > 0; text = text[min(len(text), size):] {
			_, _ = w.Write(text[:min(len(text), size)])
		}
		if w.finder.version != "23.03.1-20.27.0-70.6" {
			t.Errorf("in pieces of %d bytes: %q", size, w.finder.version)
		}
	}
}

// TestProgramIsNotInStrings checks text of others that looks like a statement.
func TestProgramIsNotInStrings(t *testing.T) {
	for _, text := range []string{
		`{"Open_vSwitch":{"a":{"external_ids":["map",[["x","\"ovs_version\":\"9.9.9\""]]]}}}`,
		`{"name":"Open_vSwitch","tables":{"Open_vSwitch":{"columns":{"ovs_version":{"type":"string"}}}}}`,
		`{"Open_vSwitch":{"a":{"ovs_version":["set",[]]}}}`,
		`{"Open_vSwitch":{"a":{"ovs_version":"` + strings.Repeat("9", 65) + `"}}}`,
	} {
		var f programFinder
		if f.search([]byte(text)); f.version != "" {
			t.Errorf("%q in %s", f.version, text)
		}
	}
}

// TestProgramSearchIsLinear searches a record that repeats the beginning of a statement.
func TestProgramSearchIsLinear(t *testing.T) {
	var f programFinder
	f.search(bytes.Repeat([]byte(`"ovs_version"`), 1<<20))
	if f.version != "" {
		t.Error(f.version)
	}
}
