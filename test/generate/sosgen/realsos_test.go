package sosgen

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestRealSosReplays replays a report that the installed sos makes of a live node, and
// the same report after `sos clean`.
func TestRealSosReplays(t *testing.T) {
	if !sets.HasSos() {
		t.Skip("sos is not installed (Debian: sosreport), or this user may not run it")
	}
	needLab(t)
	recorded := sets.NodeOfSos(t, lab, recordings.dir)
	n, err := Load(recorded)
	if err != nil {
		t.Fatal(err)
	}
	report, cleaned := files.Only(t, filepath.Join(recorded, "real", "sosreport-*.tar.xz")),
		files.Only(t, filepath.Join(recorded, "real/cleaned", "*.tar.xz"))
	e := era("4.0-4.1")
	t.Run("report", func(t *testing.T) {
		r := replay(t, report)
		c := r.manifest.Collection(workdir.OVS)
		if c == nil || c.Host != n.Host || !sosVersion.MatchString(c.Source.Tool) {
			t.Fatalf("the manifest: %+v", c)
		}
		if c.Source.Tool != "sos 4.0" && c.Source.Tool != "sos 4.1" {
			t.Skip("the test does not know what a report of ", c.Source.Tool, " holds")
		}
		checkBridges(t, n, r, supplies(e, n))
		checkCentral(t, n, r)
	})
	t.Run("cleaned", func(t *testing.T) { checkReallyCleaned(t, n, cleaned) })
}

var sosVersion = regexp.MustCompile(`^sos [0-9.]+$`)

// checkReallyCleaned replays a cleaned report. sos clean writes invalid addresses
// (102.0.0.4/245): those flows are rejected, each with its reason, and no others.
func checkReallyCleaned(t *testing.T, n *Node, cleaned string) {
	r := replay(t, cleaned)
	for name, kind := range map[string]workdir.Kind{NB: workdir.NB, SB: workdir.SB} {
		live, err := n.Rows(name)
		if err != nil {
			t.Fatal(err)
		}
		want, have := identities(rowsOf(t, live)), identities(rows(t, n, "unix:"+r.Workdir.Socket(kind), name))
		if !slices.Equal(want, have) {
			t.Errorf("%s: %d rows of %d, or different ones", name, len(have), len(want))
		}
	}
	for _, b := range r.report.Bridges {
		live, err := n.Truth(b.Name, "flows")
		if err != nil {
			t.Fatal(err)
		}
		counts := b.Counts[workdir.Flows]
		if all := len(flowsByMatch(string(live))); counts == nil || counts.Restored+counts.Different+counts.Rejected < all {
			t.Errorf("%s: %d flows were live: %+v", b.Name, all, counts)
		}
	}
	rejected := 0
	for _, i := range r.report.Rejected {
		if i.Reason == "" || i.Text == "" {
			t.Errorf("rejected without a reason: %+v", i)
		}
		rejected++
	}
	if want := map[bool]int{true: 3, false: 0}[rejected > 0]; r.started.code != want {
		t.Errorf("%d entries are rejected, exit code %d", rejected, r.started.code)
	}
}

// identities returns the table and UUID of each row.
func identities(rows []string) []string {
	var list []string
	for _, r := range rows {
		table, rest, _ := strings.Cut(r, " ")
		_, id, _ := strings.Cut(rest, "_uuid=")
		uuid, _, _ := strings.Cut(id, "]")
		list = append(list, table+uuid)
	}
	slices.Sort(list)
	return list
}
