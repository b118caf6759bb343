package compare_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/answer/compare"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/sets"
)

// TestReportsOfRealNodesNameOnlyWhatChanged compares unpacked reports of real nodes, as old
// versions of sos recorded them (in OpenFlow 1.0 or 1.3 alone, without meters, with and without
// databases of OVN), with the whole reports: first without a change, then after one flow of
// br-int is gone and another has other actions.
func TestReportsOfRealNodesNameOnlyWhatChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("compares whole reports, for seconds")
	}
	for name, versions := range map[string][]string{
		"captures/ovn-kubernetes-worker": {"OpenFlow10", "OpenFlow13"},
		"captures/ovn-openstack-compute": {"OpenFlow13"},
		"trunk/neutron-ovs-dvr-cmp-1":    {"OpenFlow10", "OpenFlow13"},
	} {
		report := captures.Report(t, name)
		unpack := func() string { return captures.Unpack(t, report, "--strip-components=1") }
		whole, changed := unpack(), unpack()
		plantChange(t, changed)
		for _, version := range versions {
			for _, databases := range []bool{true, false} {
				t.Run(strings.Join([]string{filepath.Base(name), version,
					map[bool]string{true: "with databases", false: "without databases"}[databases]}, ", "), func(t *testing.T) {
					old := unpack()
					captures.KeepDumps(t, old, map[string]string{"dump-flows": version, "dump-groups": version})
					if !databases {
						removeDatabases(t, old)
					}
					c := comparedReports(t, old, whole)
					if show(t, c); !c.Same {
						t.Errorf("%d findings where nothing changed", len(c.Findings))
					}
					c = comparedReports(t, old, changed)
					counts := map[compare.Change]int{}
					for _, f := range c.Findings {
						if strings.Contains(f.Name, "br-int") {
							counts[f.Change]++
						}
					}
					if show(t, c); len(c.Findings) != 2 || counts[compare.Gone] != 1 || counts[compare.Changed] != 1 {
						t.Errorf("%d findings, want the changed flow of br-int and the one that is gone", len(c.Findings))
					}
				})
			}
		}
	}
}

// goTo matches what sends packets of a flow to another table.
var goTo = regexp.MustCompile(`resubmit\(,1?[0-9]\)$`)

// TestFlowsThatNoDatabaseKnowsAreCompared compares a node with itself after its deployment was made anew: the older
// report has no southbound database, and that of the newer one has other cookies and other keys. Only the MAC address
// that OVN made up anew differs, and what is planted.
func TestFlowsThatNoDatabaseKnowsAreCompared(t *testing.T) {
	var reports []string
	for _, name := range []string{"openstack", "openstack-sos"} {
		recorded := os.Getenv(sets.RecordedVariable)
		found, _ := filepath.Glob(filepath.Join(recorded, "nodes", name, "sosreport-*.tar.xz"))
		if recorded == "" || len(found) != 1 {
			t.Skip("no report was recorded of the topologies of one node")
		}
		reports = append(reports, captures.Unpack(t, found[0], "--strip-components=1"))
	}
	for _, changed := range []bool{false, true} {
		if changed {
			plantChange(t, reports[1])
		}
		older := reports[0]
		if err := os.Remove(filepath.Join(older, "var/lib/ovn/etc/ovnsb_db.db")); err != nil && !changed {
			t.Fatal(err)
		}
		for _, sides := range [][2]string{{older, reports[1]}, {reports[1], older}} {
			c := comparedReports(t, sides[0], sides[1])
			missing := strings.Join(c.Missing, "\n")
			if strings.Contains(missing, "begin at other tables") ||
				strings.Contains(missing, "names the numbers") ||
				!strings.Contains(missing, "no OVN SB database has their cookies") {
				t.Errorf("not compared: %s", missing)
			}
			macs, planted := madeUp.FindStringSubmatch(c.Findings[0].Line()), 0
			for _, f := range c.Findings {
				if f.Kind == "flow" && (macs == nil ||
					!strings.Contains(f.Line(), macs[1]) && !strings.Contains(f.Line(), macs[2])) {
					planted++
				}
			}
			if planted != map[bool]int{true: 1}[changed] { // the other one is taken as a result of the setting
				show(t, c)
				t.Errorf("changed %v: %d flows differ otherwise", changed, planted)
			}
		}
	}
}

// madeUp matches a MAC address that OVN makes up, before and after.
var madeUp = regexp.MustCompile(`svc_monitor_mac ([0-9a-f:]{17}) -> ([0-9a-f:]{17})`)

// plantChange removes the first flow of table 0 with a port from each dump of br-int in an
// unpacked report, and makes the first that ends with going to another table go to table 99.
func plantChange(t *testing.T, report string) {
	t.Helper()
	dumps, err := filepath.Glob(filepath.Join(report, "sos_commands/*/ovs-ofctl_*dump-flows_br-int"))
	if err != nil || len(dumps) == 0 {
		t.Fatal(dumps, err)
	}
	for _, path := range dumps {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		gone, other := false, false
		for line := range strings.SplitSeq(string(text), "\n") {
			if !gone && strings.Contains(line, "table=0,") && strings.Contains(line, "in_port=") {
				gone = true
				continue
			}
			if !other && goTo.MatchString(line) {
				line, other = goTo.ReplaceAllString(line, "resubmit(,99)"), true
			}
			lines = append(lines, line)
		}
		if !gone || !other {
			t.Fatalf("%s: a flow is gone: %v, one has other actions: %v", path, gone, other)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// removeDatabases removes the databases of OVN from an unpacked report.
func removeDatabases(t *testing.T, report string) {
	t.Helper()
	err := filepath.WalkDir(report, func(path string, _ os.DirEntry, err error) error {
		if base := filepath.Base(path); err == nil && (base == "ovnnb_db.db" || base == "ovnsb_db.db") {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comparedReports compares two unpacked reports.
func comparedReports(t *testing.T, older, newer string) *compare.Comparison {
	t.Helper()
	var sides []*compare.Side
	for _, folder := range []string{older, newer} {
		side, err := compare.Open(t.Context(), folder, compare.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer side.Close()
		sides = append(sides, side)
	}
	c, err := compare.Compare(t.Context(), sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNothingCollectedIsNotCompared has folders of which nothing was collected: that nothing
// changed there is not known.
func TestNothingCollectedIsNotCompared(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "manifest.json"), []byte(`{"format": 1, "collections": []}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if side, err := compare.Open(t.Context(), folder, compare.OpenOptions{}); err == nil {
		side.Close()
		t.Error("a workdir without data is taken for a capture")
	}
}
