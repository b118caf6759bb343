package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

func TestSentencesSayHowFarCopiesAreApart(t *testing.T) {
	newest := Copy{Nodes: []string{"b"}, NBCfg: 7, Changed: time.Unix(1000, 0)}
	const begin = "the OVN SB database of a differs from the copy of b, from which names are taken: "
	for name, c := range map[string]struct {
		older Copy
		want  []string
	}{
		"the same moment, written differently": {Copy{NBCfg: 7, Changed: newest.Changed}, nil},
		"older": {Copy{NBCfg: 5, Changed: time.Unix(910, 0), Behind: 90,
			Differs: map[string]int{"Port_Binding": 2, "Chassis": 1}},
			[]string{begin + "its last change is 1m30s older; nb_cfg 5 and 7; rows in only one of them: 1 of Chassis, 2 of Port_Binding"}},
		"clocks that differ": {Copy{NBCfg: 5, Changed: time.Unix(1003, 0), Behind: -3},
			[]string{begin + "its last change is 3s later although its nb_cfg is lower, so the clocks of the servers differ; nb_cfg 5 and 7; no rows of ports and switches are in only one of them"}},
		"no time": {Copy{NBCfg: 7},
			[]string{begin + "the times of their last changes are not known; nb_cfg 7 and 7; no rows of ports and switches are in only one of them"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.older.Nodes = []string{"a"}
			got := Sentences([]Database{{Kind: workdir.SB, Copies: []Copy{newest, c.older}}})
			expect.Equal(t, got, c.want)
		})
	}
}

func TestSentencesNameDeployments(t *testing.T) {
	got := Sentences([]Database{
		{Kind: workdir.NB, Name: "zone1", Copies: []Copy{{Nodes: []string{"b"}}, {Nodes: []string{"a"}}}},
		{Kind: workdir.NB, Copies: []Copy{{Nodes: []string{"c"}}}},
	})
	want := `the OVN NB databases are of 2 deployments, or of zones that OVN interconnects: "zone1" of a, b; c`
	expect.Equal(t, got[len(got)-1], want, got)
	zones := []Database{{Kind: workdir.NB, Name: "node1", Copies: []Copy{{Nodes: []string{"a"}}}},
		{Kind: workdir.NB, Name: "node2", Copies: []Copy{{Nodes: []string{"b"}}}}}
	expect.Equal(t, Sentences(zones), nil)
}

// TestDatabasesOfAnEndedContext checks that databases which were not read any more are no
// databases: completion has little time.
func TestDatabasesOfAnEndedContext(t *testing.T) {
	folder := t.TempDir()
	for _, node := range []string{"a", "b"} {
		path := filepath.Join(folder, node, "db", "ovn_sb", "ovnsb_db.db")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(node), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(folder, nil)
	if s == nil || err != nil {
		t.Fatal(s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, _, err := s.Databases(ctx); len(found) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want %v", found, err, context.Canceled)
	}
}

// TestSentencesAreShort describes the zones of a large cluster.
func TestSentencesAreShort(t *testing.T) {
	var databases []Database
	for i := range 60 {
		databases = append(databases, Database{Kind: workdir.NB,
			Copies: []Copy{{Nodes: []string{fmt.Sprintf("worker%02d", i)}}}})
	}
	expect.Equal(t, Sentences(databases), []string{"the OVN NB databases are of 60 deployments, or of zones that OVN interconnects: " +
		"worker00; worker01; worker02; worker03; worker04; worker05; worker06; worker07; worker08; worker09; and 50 more"})
}
