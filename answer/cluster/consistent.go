package cluster

import (
	"context"
	"maps"

	"ovs-offline/internal/ovsdb/raft"
)

// contradictions finds files that contradict each other or themselves, as ovsdb-tool check-cluster
// does.
func (g *group) contradictions(ctx context.Context) (problems []*Problem, err error) {
	var logs []*raft.Member
	for _, m := range g.members {
		if m.log.Joining() {
			continue
		}
		logs = append(logs, m.log)
		if why := m.log.Contradiction; why != "" {
			problems = append(problems, g.contradiction(m.given.Name+": "+why, m.log))
		}
		if !m.log.Listed() {
			problems = append(problems, g.contradiction(m.given.Name+": it never counts its own server among those of the cluster", m.log))
		}
	}
	found, err := raft.Contradictions(ctx, logs)
	for _, one := range found {
		problems = append(problems, g.contradiction(sentence("%s: %s and %s", one.What, g.name(one.A.Server), g.name(one.B.Server)), g.outvoted(one)...))
	}
	return problems, err
}

func (g *group) contradiction(evidence string, wrong ...*raft.Member) *Problem {
	p := &Problem{Kind: Contradicting, Severity: Error, Evidence: []string{evidence},
		What:    sentence("the files of %s contradict each other: servers have committed different data", g.database),
		Follows: "clients see other data on each server, and it stays so; ovsdb-tool check-cluster refuses the files"}
	for _, log := range wrong {
		m := g.member(log.Server)
		p.Servers = append(p.Servers, log.Server)
		p.Repair = append(p.Repair, g.repairMember(m)...)
	}
	if len(wrong) == 0 {
		keep := g.bestData()
		p.Repair = append(g.plan().look("no majority of the files agrees: decide which data to keep (ovs-offline compare shows how two differ); the steps keep that of "+g.name(keep.server())).steps, g.restore(keep)...)
	}
	return p
}

// outvoted returns which of two contradicting members has to go: the one whose entry fewer members
// have. None is returned if that does not decide.
func (g *group) outvoted(c raft.Contradiction) []*raft.Member {
	if c.Index == 0 {
		return nil
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
		return []*raft.Member{c.B}
	case b >= g.majority() && b > a:
		return []*raft.Member{c.A}
	}
	return nil
}

// twoClusters finds servers of another cluster of the same database at the addresses or hosts of
// this one: create-cluster was run where join-cluster was meant.
func (g *group) twoClusters(groups []*group) (problems []*Problem) {
	for _, other := range groups {
		if other == g || other.database != g.database || other.newest == nil || !g.prevails(other) {
			continue
		}
		shared := g.sharedHosts(other)
		p := &Problem{Kind: TwoClusters, Severity: Error, Servers: serversOf(other.members),
			What:     sentence("there are two clusters of %s: %s with %d servers, and %s with %d (%s)", g.database, short(g.id), len(g.config), short(other.id), len(other.config), other.names(serversOf(other.members))),
			Evidence: []string{sentence("cluster %s: %s", g.id, describe(g.config)), sentence("cluster %s: %s", other.id, describe(other.config))},
			Follows:  "each has data of its own, and clients see that of the server that they reach"}
		if len(shared) == 0 {
			p.Severity, p.Follows = Note, "they share no address, so they may be of two deployments; if they should be one, servers of the smaller have to join the other"
			problems = append(problems, p)
			continue
		}
		p.Repair = g.plan().look(sentence("the steps keep the data of %s, which has more servers or entries; what only %s has is lost: ovs-offline compare shows it", short(g.id), short(other.id))).steps
		for _, m := range other.members {
			if m.state != Joining {
				p.Repair = append(p.Repair, g.takeOver(other, m.log.Address)...)
			}
		}
		problems = append(problems, p)
	}
	return problems
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
