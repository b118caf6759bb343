package drift

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

// changeECMP changes the matches and the actions of the logical flows that write or match the
// numbers of ECMP groups.
func changeECMP(t *testing.T, wd *workdir.Dir, change *strings.Replacer) (count int) {
	t.Helper()
	s := ovs.Serve(t, wd.Database(workdir.SB))
	defer s.Stop()
	out := s.Run("ovn-sbctl", "--db="+s.Remote, "--format=csv", "--data=bare", "--no-headings",
		"--columns=_uuid,match,actions", "list", "Logical_Flow")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	transaction := []string{"ovn-sbctl", "--db=" + s.Remote}
	for _, row := range rows {
		match, actions := row[1], row[2]
		if !strings.HasPrefix(match, "reg8[0..15] == 1 &&") && !strings.Contains(actions, "reg8[0..15] = 1;") {
			continue
		}
		if newMatch, newActions := change.Replace(match), change.Replace(actions); newMatch != match ||
			newActions != actions {
			transaction = append(transaction, "--", "set", "Logical_Flow", row[0], "match="+strconv.Quote(newMatch),
				"actions="+strconv.Quote(newActions))
			count++
		}
	}
	if count > 0 {
		s.Run(transaction...)
	}
	return count
}

// TestNumbersOfECMPGroupsAreNoDrift gives the groups of two routes and of a policy, and their
// next hops, other numbers, as an ovn-northd does that has met the routes in another order. Then
// a route and the policy get another next hop.
func TestNumbersOfECMPGroupsAreNoDrift(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	s := northdOn(t, wd)
	s.Run("ovn-nbctl", "--db="+s.Remote, "--wait=sb", "lr-policy-add", "GR_ovn-worker", "50", "ip4.src == 10.9.9.0/24",
		"reroute", "172.18.0.31,172.18.0.32")
	s.Stop()
	const flows = 3 * 3 // of each group, one writes its number, and two match it
	if n := changeECMP(t, wd, strings.NewReplacer("reg8[16..31] == 1", "reg8[16..31] == 2", "reg8[16..31] == 2",
		"reg8[16..31] == 0", "select(1, 2)", "select(2, 0)")); n != flows {
		t.Fatalf("%d flows changed", n)
	}
	if r := check(t, wd, Options{Northd: true}); r.Northd == nil || r.Northd.Same != r.Northd.Compared ||
		r.Northd.Compared < 500 {
		t.Errorf("%+v %v", r.Northd, lists(r))
	}
	if n := changeECMP(t, wd, strings.NewReplacer("reg8[0..15] == 1", "reg8[0..15] == 7", "reg8[0..15] = 1;",
		"reg8[0..15] = 7;", "172.18.0.21", "172.18.0.29", "172.18.0.31", "172.18.0.39")); n != flows {
		t.Fatalf("%d flows changed", n)
	}
	r := check(t, wd, Options{Northd: true})
	if n := r.Northd; n == nil || n.Same != n.Compared-2 || len(n.Missing)+len(n.Extra) > 0 || len(n.Altered) != 2 {
		t.Fatalf("%+v %v", r.Northd, lists(r))
	}
	for _, d := range r.Northd.Altered {
		e := d.Entries[0]
		hops := "172.18.0.2"
		if strings.Contains(e.Computed, "172.18.0.31") {
			hops = "172.18.0.3"
		}
		if !strings.Contains(e.Recorded, "reg8[0..15] == 7 && reg8[16..31] == ") || !strings.Contains(e.Recorded, hops+"9") ||
			!strings.Contains(e.Computed, "reg8[0..15] == 1 && reg8[16..31] == ") || !strings.Contains(e.Computed, hops+"1") {
			t.Errorf("%+v", e)
		}
	}
}
