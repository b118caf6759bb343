package sosgen

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// inspection is the output of `inspect -o json`.
type inspection struct {
	Nodes []collect.Description
}

func inspect(t *testing.T, paths ...string) (inspection, outcome) {
	t.Helper()
	o := run(t, append([]string{"inspect", "-o", "json"}, paths...)...)
	var seen inspection
	if err := json.Unmarshal([]byte(o.out), &seen); err != nil {
		t.Fatalf("inspect of %q exits with %d: %v: %s%s", paths, o.code, err, o.out, o.err)
	}
	return seen, o
}

// checkInspection checks that inspect describes the node that is then collected.
func checkInspection(t *testing.T, n *Node, e Era, path string, r *replica) {
	t.Helper()
	seen, o := inspect(t, path)
	if len(seen.Nodes) != 1 || seen.Nodes[0].Host != n.Host || o.code != r.collected.code {
		t.Fatalf("inspect exits with %d, collect with %d: %s", o.code, r.collected.code, o.out)
	}
	d := seen.Nodes[0]
	for _, db := range d.Databases {
		if db.Used && (db.Damaged > 0 || db.Form != "standalone" || db.Schema == "" || db.Records == 0) {
			t.Errorf("the description of a sound database: %+v", db)
		}
	}
	if has := slices.ContainsFunc(d.Databases,
		func(db collect.DatabaseDescription) bool { return db.Kind == workdir.OVS && db.Used }); has != e.HasDatabase() {
		t.Errorf("the report has conf.db: %v, inspect lists it: %v", e.HasDatabase(), has)
	}
	for _, b := range n.Bridges {
		if !b.Fake {
			checkVersions(t, e, b, d)
		}
	}
	checkForecast(t, d, r.report)
}

// checkVersions checks that inspect lists each dump of a bridge.
func checkVersions(t *testing.T, e Era, b Bridge, d collect.Description) {
	t.Helper()
	i := slices.IndexFunc(d.Bridges, func(have collect.BridgeDescription) bool { return have.Name == b.Name })
	if i < 0 {
		t.Errorf("inspect does not list bridge %s", b.Name)
		return
	}
	for _, v := range e.Versions(b) {
		if !slices.ContainsFunc(d.Bridges[i].Dumps[workdir.Flows],
			func(f collect.DumpDescription) bool { return f.OpenFlow == v && f.Entries > 0 }) {
			t.Errorf("%s: inspect does not list its flows in %s: %+v", b.Name, v, d.Bridges[i].Dumps[workdir.Flows])
		}
	}
}

// checkForecast checks that inspect announces exactly the dumps whose entries then
// get placeholders.
func checkForecast(t *testing.T, d collect.Description, report *report.Report) {
	t.Helper()
	for dump, words := range map[workdir.Dump]string{workdir.Groups: "no dump-groups", workdir.Meters: "no dump-meters",
		workdir.TLV: "no dump-tlv-map"} {
		for _, b := range report.Bridges {
			replaced := b.Counts[dump] != nil && b.Counts[dump].Placeholders > 0
			announced := slices.ContainsFunc(d.Cannot, func(text string) bool {
				return strings.Contains(text, words) && strings.Contains(text, b.Name+":")
			})
			if replaced != announced {
				t.Errorf("%s %s: has placeholders: %v, announced by inspect: %v: %q", b.Name, dump, replaced, announced, d.Cannot)
			}
		}
	}
}

// TestInspectCollectsNothing checks that inspect and a dry run write no files.
func TestInspectCollectsNothing(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	path := write(t, n.Report(newest()).Under("sosreport-x-2026-01-02-abcdefg"))
	tmp, wd := t.TempDir(), filepath.Join(shortDir(t), "none")
	t.Setenv("TMPDIR", tmp)
	t.Setenv("OVS_DBG_WORKDIR", wd)
	text := run(t, "inspect", path)
	dry := run(t, "collect", "--dry-run", path)
	if text.code != 0 || dry.code != 0 || text.out != dry.out {
		t.Errorf("inspect %d, collect --dry-run %d:\n%s\n%s", text.code, dry.code, text.out, dry.out)
	}
	for _, b := range n.Bridges {
		if !b.Fake && !strings.Contains(text.out, b.Name) {
			t.Errorf("%s is not in the output: %s", b.Name, text.out)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v %v", left, err)
	}
	if _, err := os.Stat(wd); err == nil {
		t.Error("the workdir exists")
	}
}
