package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// TestAFlippedBitIsALossOrHarmless flips single bits of the southbound database of a node, as a
// bad disk or transfer does. What ovsdb-server then serves either has all rows, or the file has
// a loss: Inspect or Contradictions names it. ovsdb-server never stops in what Standalone writes.
func TestAFlippedBitIsALossOrHarmless(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	whole := southbound(t)
	want := rowsServed(t, write(t, whole))
	schema := bytes.Index(whole, []byte("\nOVSDB ")) // a damaged schema is refused, by us or by ovsdb-server
	flips := sweep.Count(70, 21)
	lost, harmless := 0, 0
	for i := range flips {
		at := schema + (len(whole)-schema)*(2*i+1)/(2*flips)
		damaged := append([]byte{}, whole...)
		damaged[at] ^= 1 << (i % 7)
		src := write(t, damaged)
		dst := filepath.Join(t.TempDir(), "copy.db")
		info, remarks, err := Standalone(t.Context(), src, dst)
		if errors.Is(err, ErrSchema) {
			continue // refused
		}
		if err != nil {
			t.Fatalf("bit %d of byte %d: %v", i%7, at, err)
		}
		contradictions, err := Contradictions(t.Context(), src)
		if err != nil {
			t.Fatalf("bit %d of byte %d: %v", i%7, at, err)
		}
		isLost := info.Lost > 0 || len(contradictions) > 0
		if got := rowsServed(t, dst); got != want && !isLost {
			t.Errorf("bit %d of byte %d: %s instead of %s rows, and nothing is lost: %q", i%7, at, got, want, remarks)
		}
		if isLost {
			lost++
		} else {
			harmless++
		}
	}
	t.Logf("%d of %d flips lose something; %d change a value, or the header of a record", lost, flips, harmless)
	if lost == 0 || harmless == 0 {
		t.Errorf("%d flips lose something, and %d nothing: the test shows little", lost, harmless)
	}
}

// southbound returns the OVN SB database of a capture.
func southbound(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("tar", "-C", dir, "-xf",
		"../../../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz", "--wildcards",
		"*/ovnsb_db.db").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	paths, err := filepath.Glob(dir + "/*/var/lib/ovn/etc/ovnsb_db.db")
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	return read(t, paths[0])
}

// rowsServed returns the numbers of rows of some tables, as ovsdb-tool reads them: it fails where
// ovsdb-server would stop.
func rowsServed(t *testing.T, path string) string {
	t.Helper()
	dst := path
	if raw, err := os.ReadFile(path); err != nil || strings.HasPrefix(string(raw), "OVSDB CLUSTER") {
		dst, _, _ = standaloneFile(t, path)
	}
	query := []string{`"OVN_Southbound"`}
	for _, table := range []string{"Logical_Flow", "Port_Binding", "Datapath_Binding", "Chassis", "Multicast_Group"} {
		query = append(query, `{"op":"select","table":"`+table+`","where":[],"columns":["_uuid"]}`)
	}
	out, err := exec.Command("ovsdb-tool", "query", dst, "["+strings.Join(query, ",")+"]").CombinedOutput()
	if err != nil {
		t.Errorf("ovsdb-tool: %v: %.300s", err, out)
	}
	var counts []string
	for rows := range strings.SplitSeq(string(out), `"rows"`) {
		counts = append(counts, fmt.Sprint(strings.Count(rows, `"_uuid"`)))
	}
	return strings.Join(counts, ", ")
}
