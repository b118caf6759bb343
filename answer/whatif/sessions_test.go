package whatif

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// TestRecordedSessionsStayAsTheyWere makes a node a gateway between two others, of which the
// first, with a higher priority, answers or not. Only without its answer the node is active.
func TestRecordedSessionsStayAsTheyWere(t *testing.T) {
	fidelity.NeedScratch(t)
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	recorded, err := os.ReadFile(wd.Recorded(workdir.RecordedListInterface))
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(_uuid +: 34074394-6134-4afa-ba2a-52f745309162\n(?:.+\n)*?bfd_status +: ).*`) // the tunnel to gw1
	for _, c := range []struct {
		what, text      string
		active, assumed bool
	}{
		{"gw1 answers", string(recorded), false, false},
		{"gw1 does not answer", first.ReplaceAllString(string(recorded), `${1}{forwarding="false", state=down}`), true,
			false},
		{"not recorded", first.ReplaceAllString(string(recorded), `${1}{}`), false, true},
	} {
		if err := os.WriteFile(wd.Recorded(workdir.RecordedListInterface), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := applied(t, wd, "ha-chassis-group-add-chassis", "hag1", "4c4c4544-0000-4000-8000-000000000011", "15")
		if active := len(r.Nodes[0].Added) > 0; active != c.active {
			t.Errorf("%s: the node is active: %v, want %v: %s", c.what, active, c.active, r.Nodes[0].Summary())
		}
		want := ""
		if c.assumed {
			want = "node: BFD sessions whose state was not recorded are up with gw1"
		}
		if got := strings.Join(r.Assumed, "; "); got != want {
			t.Errorf("%s: assumed %q, want %q", c.what, got, want)
		}
	}
}

// applied computes what a command of ovn-nbctl does to a node.
func applied(t *testing.T, wd *workdir.Dir, args ...string) (r *Result) {
	t.Helper()
	onNode(t, wd, Options{}, func(s *Session) { r = apply(t, s, args...) })
	return r
}

// apply computes what a command of ovn-nbctl does.
func apply(t *testing.T, s *Session, args ...string) *Result {
	t.Helper()
	r, err := s.Apply(t.Context(), Change{args})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onNode opens a session on a node, whose name is node.
func onNode(t *testing.T, wd *workdir.Dir, o Options, use func(s *Session)) {
	t.Helper()
	dir, err := scratch.Lock(wd)
	if err != nil {
		t.Fatal(err)
	}
	defer scratch.Release(dir)
	o.Dir, o.Runtime = dir, process.New(process.Options{Folders: dir.RuntimeFolders()})
	o.NB, o.SB, o.Nodes = wd.Database(workdir.NB), wd.Database(workdir.SB), []snapshot.Member{{Name: "node", Dir: wd}}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	use(s)
}
