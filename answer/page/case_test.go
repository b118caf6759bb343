package page_test

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/page"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace"
	"ovs-offline/internal/show"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// labNodes returns the folder with the nodes of the set kubernetes-ic as workdirs, and these by their names.
func labNodes(t *testing.T) (folder string, nodes map[string]*workdir.Dir) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	folder = ovs.Dir(t)
	paths, err := sets.Recorded(t, "../../scripts/lab/lab", "kubernetes-ic").Workdirs(t.Context(), folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	nodes = map[string]*workdir.Dir{}
	for name, path := range paths {
		if nodes[name], err = workdir.Find(path); err != nil {
			t.Fatal(err)
		}
	}
	return folder, nodes
}

// writePage writes the page of the nodes in a folder, and returns its file.
func writePage(t *testing.T, folder string, checks ...trace.Check) string {
	t.Helper()
	return writePageOn(t, process.Name, folder, checks...)
}

// writePageOn does the same with the daemons of a runtime.
func writePageOn(t *testing.T, runtime, folder string, checks ...trace.Check) string {
	t.Helper()
	made, err := page.Make(t.Context(), openSet(t, folder),
		page.Options{Programs: rule.Programs{Runtime: runtime, Runtimes: local.Runtimes}, Version: "test", Checks: checks,
			Call: func(_ string, args ...string) string { return "ovs-offline " + show.Words(args...) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range made.Absent {
		t.Logf("absent: %s: %.200s", absent.Part, absent.Why)
	}
	file := filepath.Join(t.TempDir(), "case.html")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := made.Write(out); err != nil {
		t.Fatal(err)
	}
	return file
}

func openSet(t *testing.T, folder string) *snapshot.Snapshot {
	t.Helper()
	selected, err := snapshot.OpenNodes(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return selected
}

// brokenService is the VIP of a service of the set kubernetes-ic; its node lacks flows of it.
const (
	brokenNode    = "worker2"
	brokenService = "Service ns2/db"
	brokenMatch   = "nw_dst=10.96.2.10,tp_dst=5432"
)

// loseFlows removes the recorded flows of br-int that have a match, and returns them.
func loseFlows(t *testing.T, wd *workdir.Dir, match string) (lost []string) {
	t.Helper()
	dump := wd.DumpFile("br-int", workdir.Flows)
	var kept []string
	for line := range strings.Lines(files.Read(t, dump)) {
		if strings.Contains(line, match) {
			lost = append(lost, strings.TrimSpace(line))
		} else {
			kept = append(kept, line)
		}
	}
	if len(lost) == 0 {
		t.Fatalf("%s has no flow with %s", dump, match)
	}
	files.Write(t, dump, strings.Join(kept, ""))
	return lost
}

// plantedChange is the name of a row that the northbound database of a node gets at plantedClock.
const (
	plantedChange = "planted-address-set"
	plantedClock  = "14:02"
)

// changeAt adds a transaction to the northbound database of a node: of the first moment after its last one at which
// clocks show plantedClock. It returns the beginning of that minute.
func changeAt(t *testing.T, wd *workdir.Dir) time.Time {
	t.Helper()
	file := wd.Database(workdir.NB)
	records := strings.Split(strings.TrimSpace(files.Read(t, file)), "\n")
	var last struct {
		Date int64 `json:"_date"`
	}
	if err := json.Unmarshal([]byte(records[len(records)-1]), &last); err != nil || last.Date == 0 {
		t.Fatalf("the last record of %s has no date: %v", file, err)
	}
	at := time.UnixMilli(last.Date).UTC().Truncate(24 * time.Hour).Add(14*time.Hour + 2*time.Minute)
	if at.UnixMilli() <= last.Date {
		at = at.Add(24 * time.Hour)
	}
	appendRecord(t, file, map[string]any{"_date": at.Add(7 * time.Second).UnixMilli(),
		"_comment": "ovn-nbctl: ovn-nbctl create Address_Set name=" + plantedChange,
		"Address_Set": map[string]any{"0a0b0c0d-1111-4222-8333-444455556666": map[string]any{"name": plantedChange,
			"addresses": "192.0.2.99"}}})
	return at
}

// appendRecord adds a record to a database file.
func appendRecord(t *testing.T, file string, record any) {
	t.Helper()
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, file, files.Read(t, file)+recordOf(string(text)+"\n"))
}

// recordOf returns a record of a database file with its header.
func recordOf(body string) string {
	return fmt.Sprintf("OVSDB JSON %d %x\n%s", len(body), sha1.Sum([]byte(body)), body)
}

// startAll starts the replicas of all nodes.
func startAll(t *testing.T, nodes map[string]*workdir.Dir) {
	t.Helper()
	for _, wd := range nodes {
		fidelity.Started(t, wd.Path())
	}
}

// dumped returns the recorded flows of br-int.
func dumped(t *testing.T, wd *workdir.Dir) (flows []string) {
	t.Helper()
	for line := range strings.Lines(files.Read(t, wd.DumpFile("br-int", workdir.Flows))) {
		if strings.Contains(line, "table=") {
			flows = append(flows, strings.TrimSpace(line))
		}
	}
	return flows
}

// countIn counts the texts that have all of some parts.
func countIn(texts []string, parts ...string) (n int) {
	for _, text := range texts {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
			n++
		}
	}
	return n
}
