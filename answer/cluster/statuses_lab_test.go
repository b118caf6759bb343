package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/cluster"
	"ovs-offline/internal/daemonlog"
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
	expect.Equal(l.t, slices.Sorted(maps.Values(statuses.Committed)), slices.Sorted(maps.Values(files.Committed)),
		what+": addresses")
	for id, address := range statuses.Committed {
		if !slices.ContainsFunc(slices.Sorted(maps.Keys(files.Committed)),
			func(full string) bool { return strings.HasPrefix(full, id) && files.Committed[full] == address }) {
			l.t.Errorf("%s: %s at %s is not in the files", what, id, address)
		}
	}
	led := slices.DeleteFunc(slices.Clone(files.Terms), func(term cluster.Term) bool { return term.Leader == "" })
	if last := led[len(led)-1]; statuses.Leader == "" || !strings.HasPrefix(last.Leader, statuses.Leader) ||
		statuses.Terms[0].Last != last.Last {
		l.t.Errorf("%s: leader %s in term %d, by the files %s in term %d", what, statuses.Leader, statuses.Terms[0].Last,
			last.Leader, last.Last)
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
		l.t.Fatalf("%s: problems %v instead of %s: %s", what, got, kind,
			printed(&cluster.Report{Clusters: []*cluster.Cluster{c}}))
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

// statusesOfSound compares what statuses of a sound cluster show, from each and from all, with what the files do.
func (l *lab) statusesOfSound() {
	l.t.Helper()
	l.Wait("all know the leader", l.allKnow)
	for _, m := range l.Members {
		l.sameServers("from "+m.Name, l.seen(m))
		expect.Equal(l.t, len(faults(l.seen(m))), 0, "problems from "+m.Name)
	}
	l.sameServers("from all", l.seen(l.Members...))
	expect.Equal(l.t, len(faults(l.seen(l.Members...))), 0, "problems from all")
}

// allKnow reports whether all members that run know a leader.
func (l *lab) allKnow() bool {
	for _, m := range l.Members {
		if status := m.Status(); m.Running() &&
			(strings.Contains(status, "Leader: unknown\n") || !strings.Contains(status, "Status: cluster member\n")) {
			return false
		}
	}
	return true
}

// statusesOfCutOff compares what statuses show of a member that asks for votes in vain while the others go on: from
// itself, from all, from the leader.
func (l *lab) statusesOfCutOff(apart *ovs.Member) {
	l.t.Helper()
	others, leader := l.without(apart), l.leaderWithout(apart)
	p := l.only("cut off, from itself", l.seen(apart), cluster.NoQuorum, others...)
	l.says(p, "reaches 1 with itself, and", "Whether the others have a leader among themselves is not known here")
	c := l.seen(l.Members...)
	l.only("cut off, from all", c, cluster.Apart, apart)
	l.sameServers("cut off", c)
	l.only("cut off, from the leader", l.seen(leader), cluster.Dead, apart)
}

// statusesOfJoining compares what statuses show of a server that joins in vain: from itself, and from all that run.
func (l *lab) statusesOfJoining(joining *ovs.Member, why string, down ...*ovs.Member) {
	l.t.Helper()
	joining.WaitFor("Status: joining cluster")
	l.says(l.only("join, from itself", l.seen(joining), cluster.StuckJoining, joining), "the reason is not known here")
	c := l.seen(l.without(down...)...)
	for _, p := range c.Problems {
		if p.Kind == cluster.StuckJoining {
			l.says(p, joining.Address, why)
			return
		}
	}
	l.t.Errorf("no join that is stuck in %s", printed(&cluster.Report{Clusters: []*cluster.Cluster{c}}))
}

// statusesOfNewID compares what statuses show of a member that joined again with a new file: from all, from itself,
// and from the leader once that misses the old id.
func (l *lab) statusesOfNewID(leader, again *ovs.Member, old string) {
	l.t.Helper()
	for what, from := range map[string][]*ovs.Member{"from all": l.Members, "from itself": {again},
		"from the leader": {leader}} {
		c := l.seen(from...)
		p := l.only("new id, "+what, c, cluster.SameAddress, again)
		if what != "from the leader" || len(p.Servers) == 1 {
			expect.Equal(l.t, p.Servers[0][:4], old[:4], "the old id, "+what)
		}
	}
}

// statusesOfLostMajority compares what statuses of the members that are left show of those that were killed.
func (l *lab) statusesOfLostMajority(left []*ovs.Member, lost ...*ovs.Member) *cluster.Problem {
	l.t.Helper()
	var p *cluster.Problem
	for what, from := range map[string][]*ovs.Member{"from one": left[:1], "from all that run": left} {
		c := l.seen(from...)
		p = l.only("a majority is killed, "+what, c, cluster.NoQuorum, lost...)
		expect.Equal(l.t, addresses(c, p.Servers), addressesOf(lost...), what)
		expect.Equal(l.t, c.Leader, "", "leader, "+what)
		l.says(p, fmt.Sprintf("of its %d servers", len(left)+len(lost)),
			fmt.Sprintf("reaches %d with itself, and %d are needed", len(left), (len(left)+len(lost))/2+1))
	}
	return p
}

// TestStatusesOfFiveMembers compares what statuses show with what the files do, while first a minority and then a
// majority is killed.
func TestStatusesOfFiveMembers(t *testing.T) {
	l := start(t, 5)
	l.statusesOfSound()
	leader := l.Leader()
	gone := l.Other(leader)
	follower := l.Other(leader, gone)
	gone.Kill()
	for what, from := range map[string][]*ovs.Member{"from the leader": {leader}, "from a follower": {follower},
		"from all that run": l.without(gone)} {
		l.Wait("it is missed, "+what, func() bool { return len(faults(l.seen(from...))) > 0 })
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
	p := l.statusesOfLostMajority(rest, lost...)
	report, err := cluster.Examine(t.Context(), l.collect(rest, rest...))
	byFiles := problem(report, cluster.NoQuorum)
	if err != nil || byFiles == nil {
		t.Fatalf("from files: %v %s", err, printed(report))
	}
	expect.Equal(t, addresses(report.Clusters[0], byFiles.Servers), addressesOf(lost...), "missing by the files")
	l.logOfLostMajority(rest[0], lost...)
	l.repair(p)
	l.serves(l.Members...)
}

// logOfLostMajority compares what the log of a member that is left says, where nothing else was given.
func (l *lab) logOfLostMajority(left *ovs.Member, lost ...*ovs.Member) {
	l.t.Helper()
	c := inLog(l.t, left.Log())
	var dead []string
	for _, p := range c.Problems {
		switch p.Kind {
		case cluster.Dead:
			dead = append(dead, p.Servers...)
		case cluster.NoLeader:
			l.says(p, l.id(left)[:4], "asked for votes")
		default:
			l.t.Errorf("unexpected: %+v", p)
		}
	}
	slices.Sort(dead)
	expect.Equal(l.t, dead, addressesOf(lost...), "the addresses that do not answer, by the log")
	if got := faults(c); got[0] != cluster.NoLeader {
		l.t.Errorf("%v instead of a missing leader by the log\n%s", got, left.Log())
	}
}

// inLog returns what a log alone says.
func inLog(t *testing.T, text string) *cluster.Cluster {
	t.Helper()
	report := &cluster.Report{}
	err := report.AddLogs(t.Context(), []cluster.Log{{Name: "ovsdb-server.log",
		Open: func(ctx context.Context) (*daemonlog.Reader, error) {
			return daemonlog.NewReader(ctx, strings.NewReader(text), "ovsdb-server", daemonlog.Options{})
		}}})
	if err != nil || len(report.Clusters) != 1 {
		t.Fatalf("%v: %s", err, printed(report))
	}
	return report.Clusters[0]
}
