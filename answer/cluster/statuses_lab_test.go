package cluster_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/cluster"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// printed returns what members print of themselves, without files.
func (l *lab) printed(members ...*ovs.Member) (statuses []cluster.Member) {
	l.t.Helper()
	for _, m := range members {
		status := m.Status()
		if status == "" {
			l.t.Fatalf("%s prints no status", m.Name)
		}
		statuses = append(statuses, cluster.Member{Name: m.Name, Status: status, Control: m.Control()})
	}
	return statuses
}

// seen examines what members print, and returns the only cluster.
func (l *lab) seen(members ...*ovs.Member) *cluster.Cluster {
	l.t.Helper()
	report, err := cluster.Examine(l.t.Context(), l.printed(members...))
	if err != nil || len(report.Clusters) != 1 || len(report.Clusters[0].Unknown) == 0 {
		l.t.Fatalf("%v: %s", err, printed(report))
	}
	return report.Clusters[0]
}

// sameServers fails the test unless statuses show the servers and the leader that the files show.
func (l *lab) sameServers(what string, statuses *cluster.Cluster) {
	l.t.Helper()
	report, err := cluster.Examine(l.t.Context(), l.collect(l.Members))
	if err != nil {
		l.t.Fatal(err)
	}
	files := report.Clusters[0]
	expect.Equal(l.t, statuses.Database+" "+statuses.ID, files.Database+" "+files.ID, what+": cluster")
	expect.Equal(l.t, slices.Sorted(maps.Values(statuses.Committed)), slices.Sorted(maps.Values(files.Committed)), what+": addresses")
	for id, address := range statuses.Committed {
		if !slices.ContainsFunc(slices.Sorted(maps.Keys(files.Committed)), func(full string) bool { return strings.HasPrefix(full, id) && files.Committed[full] == address }) {
			l.t.Errorf("%s: %s at %s is not in the files", what, id, address)
		}
	}
	led := slices.DeleteFunc(slices.Clone(files.Terms), func(term cluster.Term) bool { return term.Leader == "" })
	if last := led[len(led)-1]; statuses.Leader == "" || !strings.HasPrefix(last.Leader, statuses.Leader) || statuses.Terms[0].Last != last.Last {
		l.t.Errorf("%s: leader %s in term %d, by the files %s in term %d", what, statuses.Leader, statuses.Terms[0].Last, last.Leader, last.Last)
	}
}

// faults returns the kinds of the problems that need a repair.
func faults(c *cluster.Cluster) (kinds []cluster.Kind) {
	for _, p := range c.Problems {
		if p.Severity != cluster.Note {
			kinds = append(kinds, p.Kind)
		}
	}
	return kinds
}

// only returns the only problem that needs a repair, and fails the test unless it is of a kind and names the members.
func (l *lab) only(what string, c *cluster.Cluster, kind cluster.Kind, named ...*ovs.Member) *cluster.Problem {
	l.t.Helper()
	if got := faults(c); len(got) != 1 || got[0] != kind {
		l.t.Fatalf("%s: problems %v instead of %s: %s", what, got, kind, printed(&cluster.Report{Clusters: []*cluster.Cluster{c}}))
	}
	for _, m := range named {
		l.says(c.Problems[0], m.Address)
	}
	return c.Problems[0]
}

// addresses returns the addresses of servers.
func addresses(c *cluster.Cluster, servers []string) (list []string) {
	for _, server := range servers {
		list = append(list, c.Committed[server])
	}
	slices.Sort(list)
	return list
}

func addressesOf(members ...*ovs.Member) (list []string) {
	for _, m := range members {
		list = append(list, m.Address)
	}
	slices.Sort(list)
	return list
}

// TestStatusesOfFiveMembers compares what statuses show with what the files do, while first a minority and then a majority is killed.
func TestStatusesOfFiveMembers(t *testing.T) {
	l := start(t, 5)
	l.Wait("all know the leader", func() bool { return l.allKnow(l.Members...) })
	for _, m := range l.Members {
		l.sameServers("from "+m.Name, l.seen(m))
		expect.Equal(t, len(faults(l.seen(m))), 0, "problems from "+m.Name)
	}
	l.sameServers("from all", l.seen(l.Members...))
	expect.Equal(t, len(faults(l.seen(l.Members...))), 0, "problems from all")

	leader := l.Leader()
	gone := l.Other(leader)
	follower := l.Other(leader, gone)
	gone.Kill()
	l.Wait("the leader misses it", func() bool { return len(faults(l.seen(leader))) > 0 })
	for what, from := range map[string][]*ovs.Member{"from the leader": {leader}, "from a follower": {follower}, "from all that run": l.without(gone)} {
		c := l.seen(from...)
		p := l.only("one is killed, "+what, c, cluster.Dead, gone)
		expect.Equal(t, addresses(c, p.Servers), addressesOf(gone), what)
		l.sameServers(what, c)
	}

	lost := []*ovs.Member{gone, leader, follower}
	leader.Kill()
	follower.Kill()
	rest := l.without(lost...)
	l.tries(rest...)
	for what, from := range map[string][]*ovs.Member{"from one": rest[:1], "from all that run": rest} {
		c := l.seen(from...)
		p := l.only("three are killed, "+what, c, cluster.NoQuorum, lost...)
		expect.Equal(t, addresses(c, p.Servers), addressesOf(lost...), what)
		expect.Equal(t, c.Leader, "", "leader, "+what)
		l.says(p, "of its 5 servers", "reaches 2 with itself, and 3 are needed")
	}
	report, err := cluster.Examine(t.Context(), l.collect(rest, rest...))
	if p := problem(report, cluster.NoQuorum); err != nil || p == nil {
		t.Fatalf("from files: %v %s", err, printed(report))
	}
	expect.Equal(t, addresses(report.Clusters[0], problem(report, cluster.NoQuorum).Servers), addressesOf(lost...), "missing by the files")
	l.repair(l.seen(rest...).Problems[0])
	l.serves(l.Members...)
}

// allKnow reports whether members name one leader.
func (l *lab) allKnow(members ...*ovs.Member) bool {
	for _, m := range members {
		if status := m.Status(); strings.Contains(status, "Leader: unknown\n") || !strings.Contains(status, "Status: cluster member\n") {
			return false
		}
	}
	return true
}

// TestStatusesOfThreeMembers cuts a member off, lets another one join in vain, and gives a third one a new id.
func TestStatusesOfThreeMembers(t *testing.T) {
	l := start(t, 3)
	apart := l.Leader()
	apart.CutOff()
	leader := l.leaderWithout(apart)
	l.tries(apart)
	others := l.without(apart)
	p := l.only("cut off, from itself", l.seen(apart), cluster.NoQuorum, others...)
	l.says(p, "reaches 1 with itself, and 2 are needed", "Whether the others have a leader among themselves is not known here")
	l.Wait("the others agree", func() bool { return l.allKnow(others...) })
	c := l.seen(l.Members...)
	l.only("cut off, from all", c, cluster.Apart, apart)
	l.sameServers("cut off", c)
	l.Wait("the leader misses it", func() bool { return len(faults(l.seen(leader))) > 0 })
	l.only("cut off, from the leader", l.seen(leader), cluster.Dead, apart)
	l.repair(l.seen(l.Members...).Problems[0])
	l.serves(l.Members...)

	joining := l.Add()
	joining.Join(joining.Address + ".other")
	joining.Start()
	l.says(l.only("join, from itself", l.seen(joining), cluster.StuckJoining, joining), "the reason is not known here")
	p = l.only("join, from all", l.seen(l.Members...), cluster.StuckJoining, joining)
	l.says(p, "none of its remote addresses is that of a server of the cluster")
	l.repair(p)
	l.serves(l.Members...)

	leader = l.Leader()
	again := l.Other(leader)
	old := l.id(again)
	l.lose(again)
	again.Join(leader.Address)
	again.Start()
	again.WaitFor("Status: cluster member")
	l.Wait("all know it", func() bool { return l.allKnow(l.Members...) && strings.Contains(leader.Status(), l.id(again)[:4]) })
	files, err := cluster.Examine(t.Context(), l.collect(l.Members))
	if err != nil || problem(files, cluster.SameAddress) == nil {
		t.Fatalf("by the files: %v %s", err, printed(files))
	}
	for what, from := range map[string][]*ovs.Member{"from all": l.Members, "from itself": {again}} {
		p = l.only("new id, "+what, l.seen(from...), cluster.SameAddress, again)
		expect.Equal(t, p.Servers[0][:4], old[:4], "the old id, "+what)
	}
	l.Wait("the leader misses the old id", func() bool {
		p := l.seen(leader).Problems
		return len(p) > 0 && len(p[0].Servers) == 1
	})
	p = l.only("new id, from the leader", l.seen(leader), cluster.SameAddress, again)
	expect.Equal(t, p.Servers[0][:4], old[:4], "the old id, from the leader")
	l.repair(p)
	l.Wait("it is removed", func() bool { return !strings.Contains(leader.Status(), "("+old[:4]+" at") })
	l.serves(l.Members...)
}

// TestStatusesWithoutMajority kills two of three, keeps the third, and lets a fourth server ask it.
func TestStatusesWithoutMajority(t *testing.T) {
	l := start(t, 3)
	l.Wait("all know the leader", func() bool { return l.allKnow(l.Members...) })
	left := l.Other(l.Leader())
	lost := l.without(left)
	for _, m := range lost {
		m.Kill()
	}
	l.tries(left)
	p := l.only("two are killed", l.seen(left), cluster.NoQuorum, lost...)
	expect.Equal(t, addresses(l.seen(left), p.Servers), addressesOf(lost...), "missing")
	joining := l.Add()
	joining.Join(left.Address)
	joining.Start()
	joining.WaitFor("Status: joining cluster")
	c := l.seen(left, joining)
	kinds := faults(c)
	slices.Sort(kinds)
	expect.Equal(t, kinds, []cluster.Kind{cluster.NoQuorum, cluster.StuckJoining}, "problems with a server that joins")
	for _, p := range c.Problems {
		if p.Kind == cluster.StuckJoining {
			l.says(p, joining.Address, "only a leader can let it join")
		}
	}
}
