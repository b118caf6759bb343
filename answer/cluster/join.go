package cluster

import (
	"fmt"
	"maps"
	"slices"

	"ovs-offline/internal/phrase"
)

// joining finds servers that never joined, and says why.
func (g *group) joining(groups []*group) (problems []*Problem) {
	for _, m := range g.members {
		if m.state != Joining {
			continue
		}
		p := &Problem{Kind: StuckJoining, Severity: Error, Servers: []string{m.server()},
			What:     fmt.Sprintf("%s has not joined the cluster", g.name(m.server())),
			Evidence: []string{fmt.Sprintf("%s: it holds no data, and joins %s of the database %s", m.given.Name, phrase.FirstNames(m.log.Remotes), m.log.Name)},
			Follows:  "it serves nothing, and does not count for the majority"}
		if m.status != nil {
			p.Evidence = append(p.Evidence, "cluster/status: Status: "+m.status.Status)
		}
		g.whyJoining(m, p)
		problems = append(problems, p)
	}
	return problems
}

// whyJoining adds the cause and the repair.
func (g *group) whyJoining(m *member, p *Problem) {
	cause := func(format string, args ...any) { p.What += ": " + fmt.Sprintf(format, args...) }
	if g.newest == nil {
		cause("no file of a server at its remote addresses was given, so the reason is not known here")
		p.Repair = g.plan().look("collect the files of the cluster's members as well").steps
		return
	}
	live := g.live()
	reach := slices.DeleteFunc(slices.Clone(m.log.Remotes), func(address string) bool { return !slices.Contains(live, address) })
	switch {
	case m.log.Name != g.database:
		cause("it is of the database %s, and the servers at its remote addresses have %s", m.log.Name, g.database)
		p.Repair = g.joinAnew(m)
	case m.log.Cluster != "" && m.log.Cluster != g.id:
		cause("it wants the cluster %s, and that at its remote addresses is %s", short(m.log.Cluster), short(g.id))
		p.Repair = g.joinAnew(m)
	case len(g.quorum()) > 0:
		cause("the cluster has no majority or no leader, and only a leader can let it join")
		p.Repair = g.plan().look("repair the cluster first (see above); the server then joins by itself").steps
	case g.config[m.server()] != "":
		cause("the cluster counts it as a member already, and it does not know that")
		p.Repair = g.plan().stop(m.log.Address).start(m.log.Address, startAgain+": the leader then sends it the data").waitMember(m.log.Address).steps
	case len(reach) == 0:
		cause("%s", g.deadEnd(m))
		p.Repair = g.joinAnew(m)
	default:
		cause("%s can be joined and the files show no obstacle, so the connection to it fails (a filter, a certificate), or the server was not started", phrase.FirstNames(reach))
		plan := g.plan()
		for _, server := range g.atAddress(m.log.Address, m.server()) {
			plan.kick(server)
		}
		p.Repair = plan.start(m.log.Address, "start its ovsdb-server if it does not run, or give it the connection to "+phrase.FirstNames(reach)).waitMember(m.log.Address).steps
	}
}

// live returns the addresses of the members that take part in the cluster. A member takes part if it
// knows the latest term.
func (g *group) live() (list []string) {
	for _, m := range g.voters() {
		if m.log.KnownTerm() >= g.newest.log.LastTerm() && (m.status == nil || m.status.Apart() == "") {
			list = append(list, m.log.Address)
		}
	}
	for _, server := range g.absent() {
		dead := slices.ContainsFunc(g.dead(), func(p *Problem) bool { return slices.Contains(p.Servers, server) })
		if !dead {
			list = append(list, g.config[server])
		}
	}
	return list
}

// deadEnd says why no server at the remote addresses of a server lets it join.
func (g *group) deadEnd(m *member) string {
	var out []string
	for _, address := range m.log.Remotes {
		if slices.Contains(slices.Collect(maps.Values(g.config)), address) {
			out = append(out, address)
		}
	}
	if len(out) > 0 {
		return fmt.Sprintf("its remote addresses lead only to servers that take no part in the cluster now (%s)", phrase.FirstNames(out))
	}
	return fmt.Sprintf("none of its remote addresses is that of a server of the cluster, whose servers are %s", describe(g.config))
}

// atAddress returns the servers of the configuration at an address, but for one.
func (g *group) atAddress(address, not string) (list []string) {
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if g.config[server] == address && server != not {
			list = append(list, server)
		}
	}
	return list
}

// joinAnew gives a server that has not joined a file with which it can.
func (g *group) joinAnew(m *member) []Step {
	p := g.plan().stop(m.log.Address)
	for _, server := range g.atAddress(m.log.Address, m.server()) {
		p.kick(server)
	}
	live := slices.DeleteFunc(g.live(), func(address string) bool { return address == m.log.Address })
	slices.Sort(live)
	if len(live) == 0 {
		live = g.remotes(m.log.Address)
	}
	p.setAside(m.log.Address).join(m.log.Address, g.id, live)
	return p.start(m.log.Address, startAgain).waitMember(m.log.Address).steps
}
