package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/pkg/ovsdb/raft"
)

// contradictions finds files that contradict each other or themselves, as ovsdb-tool check-cluster
// does.
func (g *group) contradictions(ctx context.Context) ([]*Problem, error) {
	p := &Problem{Kind: Contradicting, Severity: Error,
		What:    fmt.Sprintf("the files of %s contradict each other: servers have committed different data", g.database),
		Follows: "clients see other data on each server, and it stays so; ovsdb-tool check-cluster refuses the files"}
	wrong, undecided := map[string]bool{}, false
	var logs []*raft.Member
	for _, m := range g.members {
		if m.log.Joining() {
			continue
		}
		logs = append(logs, m.log)
		why := m.log.Contradiction
		if !m.log.Listed() {
			why = "it never counts its own server among the servers of the cluster"
		}
		if why != "" {
			p.Evidence = append(p.Evidence, m.given.Name+": "+why)
			wrong[m.server()] = true
		}
	}
	found, err := raft.Contradictions(ctx, logs)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		p.Evidence = append(p.Evidence, fmt.Sprintf("%s: %s and %s", one.What, g.name(one.A.Server), g.name(one.B.Server)))
		outvoted := g.outvoted(one)
		wrong[outvoted] = wrong[outvoted] || outvoted != ""
		undecided = undecided || outvoted == "" && one.Index > 0
	}
	delete(wrong, "")
	if len(p.Evidence) == 0 {
		return nil, nil
	}
	p.Servers = slices.Sorted(maps.Keys(wrong))
	if undecided || len(wrong) == 0 {
		keep := g.bestData()
		p.Repair = append(g.plan().look("no majority of the files agrees: decide which data to keep (the command compare shows how two differ); the steps keep that of "+g.name(keep.server())).steps, g.restore(keep)...)
		return []*Problem{p}, nil
	}
	for _, server := range p.Servers {
		p.Repair = append(p.Repair, g.repairMember(g.member(server))...)
	}
	return []*Problem{p}, nil
}

// outvoted returns which of two contradicting servers has to go: the one whose entry is not that of a
// majority. It is "" if that does not decide.
func (g *group) outvoted(c raft.Contradiction) string {
	if c.Index == 0 {
		return ""
	}
	count := func(log *raft.Member) (n int) {
		entry := log.At(c.Index)
		for _, m := range g.voters() {
			if other := m.log.At(c.Index); entry != nil && other != nil && other.Term == entry.Term && other.ID == entry.ID {
				n++
			}
		}
		return n
	}
	a, b := count(c.A), count(c.B)
	switch {
	case a >= g.majority() && a > b:
		return c.B.Server
	case b >= g.majority() && b > a:
		return c.A.Server
	}
	return ""
}

// twoClusters finds servers of another cluster of the same database at the addresses or hosts of
// this one: create-cluster was run where join-cluster was meant.
func (g *group) twoClusters(groups []*group) (problems []*Problem) {
	for _, other := range groups {
		if other == g || other.database != g.database || other.isEmpty() || g.isEmpty() || !g.prevails(other) {
			continue
		}
		shared := g.sharedHosts(other)
		p := &Problem{Kind: TwoClusters, Severity: Error, Servers: other.shownServers(),
			What:     fmt.Sprintf("there are two clusters of %s: %s with %d servers, and %s with %d (%s)", g.database, short(g.id), len(g.config), short(other.id), len(other.config), other.names(other.shownServers())),
			Evidence: []string{fmt.Sprintf("cluster %s: %s", g.id, describe(g.config)), fmt.Sprintf("cluster %s: %s", other.id, describe(other.config))},
			Follows:  "each has data of its own, and clients see that of the server that they reach"}
		if len(shared) == 0 {
			p.Severity, p.Follows = Note, "they share no address, so they may be of two deployments; if they should be one, servers of the smaller have to join the other"
			problems = append(problems, p)
			continue
		}
		if g.newest == nil || other.newest == nil {
			p.Repair = g.plan().look("statuses do not show which data to keep: give the command cluster the files of servers of both, or the command compare what they hold").steps
			problems = append(problems, p)
			continue
		}
		p.Repair = g.plan().look(fmt.Sprintf("the steps keep the data of %s, which has more servers or entries; what only %s has is lost: the command compare shows it", short(g.id), short(other.id))).steps
		for _, m := range other.members {
			if m.state != Joining {
				p.Repair = append(p.Repair, g.takeOver(other, m.log.Address)...)
			}
		}
		problems = append(problems, p)
	}
	return problems
}

// isEmpty reports whether no server is known that has joined the cluster.
func (g *group) isEmpty() bool { return g.newest == nil && len(g.config) == 0 }

// shownServers returns the servers whose files or statuses were given.
func (g *group) shownServers() []string {
	list := serversOf(g.members)
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		if g.member(server) == nil {
			list = append(list, server)
		}
	}
	return list
}

// takeOver lets the server at an address leave another cluster and join this one.
func (g *group) takeOver(other *group, address string) []Step {
	steps := other.plan().stop(address).steps
	kicks := g.plan()
	for _, server := range g.atAddress(address, "") {
		kicks.kick(server)
	}
	steps = append(steps, kicks.steps...)
	return append(steps, other.plan().setAside(address).join(address, g.id, g.remotes(address)).start(address, startAgain).waitMember(address).steps...)
}

// prevails reports whether the cluster is the one to keep of two.
func (g *group) prevails(other *group) bool {
	if len(g.config) != len(other.config) {
		return len(g.config) > len(other.config)
	}
	if g.upTo != other.upTo {
		return g.upTo > other.upTo
	}
	return g.id < other.id
}

// sharedHosts returns the hosts that two clusters have in common.
func (g *group) sharedHosts(other *group) (shared []string) {
	hosts := map[string]bool{}
	for address := range maps.Values(g.config) {
		hosts[hostOf(address)] = true
	}
	for address := range maps.Values(other.config) {
		if hosts[hostOf(address)] {
			shared = append(shared, hostOf(address))
		}
	}
	return shared
}
