package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ovs-offline/internal/phrase"
)

// lagging finds servers that lack much of the leader's log.
func (g *group) lagging() (problems []*Problem) {
	const many = 1000
	leader := g.leader()
	if leader.server == "" || leader.by.Server != leader.server {
		return nil
	}
	silent := g.silent()
	for _, peer := range leader.by.Peers {
		server := g.serverOf(peer)
		missing := leader.by.Last - peer.Match
		if peer.Self || peer.Match < 0 || missing <= many || slices.ContainsFunc(silent, func(s silentPeer) bool { return s.server == server }) {
			continue
		}
		problems = append(problems, &Problem{Kind: Behind, Severity: Warning, Servers: []string{server},
			What:     fmt.Sprintf("%s lacks the last %d entries of the leader, and answers it: it is slow, or cannot take the snapshot", g.name(server), missing),
			Evidence: []string{fmt.Sprintf("cluster/status of the leader %s: it has confirmed entry %d, and the log ends at entry %d", g.name(leader.server), peer.Match, leader.by.Last)},
			Follows:  "its clients see old data until it has caught up",
			Repair:   g.plan().waitMember(peer.Address).steps})
	}
	return problems
}

// changing notes servers that are being added or removed.
func (g *group) changing() (problems []*Problem) {
	leader := g.leader()
	if leader.by == nil {
		return nil
	}
	note := func(server, what string) {
		problems = append(problems, &Problem{Kind: PendingServers, Severity: Note, Servers: []string{server}, What: what,
			Evidence: []string{g.spoken(leader.by.Server)}, Follows: "no other change of servers begins before"})
	}
	for _, peer := range leader.by.Peers {
		if server := g.serverOf(peer); peer.Phase != "" {
			note(server, fmt.Sprintf("a change of the servers is not complete: %s (%s)", g.name(server), peer.Phase))
		}
	}
	if peer := leader.by.Removing; peer != nil {
		note(g.serverOf(*peer), fmt.Sprintf("%s at %s is being removed (%s)", peer.Short, peer.Address, peer.Phase))
	}
	return problems
}

// backlog notes entries that are not committed or not applied.
func (g *group) backlog() (problems []*Problem) {
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		status := g.statuses[server]
		p := &Problem{Kind: Uncommitted, Severity: Note, Servers: []string{server}}
		switch {
		case status.Uncommitted > 0 && (status.Leader == "self" || status.Apart() != ""):
			p.What = fmt.Sprintf("the last %d entries of %s are not known to be committed", status.Uncommitted, g.name(server))
			p.Follows = fmt.Sprintf("the leader commits them once a majority has them, which is %d servers", g.majority())
		case status.Unapplied > max(status.Uncommitted, 0):
			p.What = fmt.Sprintf("%s has committed %s that its database does not have yet", g.name(server), phrase.Count(int(status.Unapplied-max(status.Uncommitted, 0)), "entry"))
			p.Follows = "its clients do not see them yet; entries that stay so mean that the server is too slow"
		default:
			continue
		}
		p.Evidence = []string{fmt.Sprintf("Entries not yet committed: %d; Entries not yet applied: %d; its log ends at entry %d", max(status.Uncommitted, 0), max(status.Unapplied, 0), status.Last)}
		problems = append(problems, p)
	}
	return problems
}

// timersPrinted finds members at the same entry whose election timers differ.
func (g *group) timersPrinted() []*Problem {
	timers, last := map[int64][]string{}, map[int64]bool{}
	for _, server := range g.speakers() {
		if status := g.statuses[server]; status.Apart() == "" && status.ElectionTimer > 0 && status.Last > 0 {
			timers[status.ElectionTimer], last[status.Last] = append(timers[status.ElectionTimer], server), true
		}
	}
	if len(timers) < 2 || len(last) > 1 {
		return nil
	}
	p := &Problem{Kind: Timers, Severity: Warning, What: "members have different election timers", Follows: "the one with the shorter timer asks for elections while the leader still counts as alive"}
	for _, timer := range slices.Sorted(maps.Keys(timers)) {
		p.Evidence = append(p.Evidence, fmt.Sprintf("%v: %s", time.Duration(timer)*time.Millisecond, g.names(timers[timer])))
	}
	return []*Problem{p}
}

// notConnected finds servers without a connection with each other, while the cluster has a leader and nothing else is wrong with them.
func (g *group) notConnected(others []*Problem) []*Problem {
	named := map[string]bool{}
	for _, p := range others {
		if p.Severity == Note {
			continue
		}
		for _, server := range p.Servers {
			named[server] = true
		}
	}
	if g.leader().server == "" || len(g.noMajorityPrinted()) > 0 {
		return nil
	}
	p := &Problem{Kind: NotConnected, Severity: Warning, What: "servers have no connection with each other",
		Follows: "the cluster goes on while its leader reaches a majority; a server that is elected later may not reach one"}
	for _, server := range g.speakers() {
		for _, other := range slices.Sorted(maps.Keys(g.config)) {
			if yes, known := g.connected(server, other); yes || !known || named[server] || named[other] {
				continue
			}
			p.Evidence = append(p.Evidence, fmt.Sprintf("%s: no connection with %s", g.name(server), g.name(other)))
			p.Servers = append(p.Servers, server, other)
		}
	}
	if len(p.Evidence) == 0 {
		return nil
	}
	slices.Sort(p.Servers)
	p.Servers = slices.Compact(p.Servers)
	p.What += ": " + g.names(p.Servers)
	p.Repair = g.plan().look("look for what is between them: a filter, a certificate, an address that changed").steps
	return []*Problem{p}
}
