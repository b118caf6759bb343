package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb/raft"
)

// joiner is a server that has not joined, as its file or its status says.
type joiner struct {
	server, address, database string
	cluster                   string // "" for any
	remotes                   []string
}

// joining finds servers that never joined by their files, and says why.
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
			p.Evidence = append(p.Evidence, "cluster/status: Status: "+m.status.state())
		}
		g.whyJoining(joiner{m.server(), m.log.Address, m.log.Name, m.log.Cluster, m.log.Remotes}, p)
		problems = append(problems, p)
	}
	return problems
}

// joiningPrinted finds servers that have not joined, as they or the leader printed.
func (g *group) joiningPrinted() (problems []*Problem) {
	leader := g.leader()
	found := map[string]*Problem{}
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		status := g.statuses[server]
		if status.state() != isJoining || g.member(server) != nil {
			continue
		}
		p := &Problem{Kind: StuckJoining, Severity: Error, Servers: []string{server}, What: g.name(server) + " has not joined the cluster",
			Evidence: []string{fmt.Sprintf("cluster/status: Status: %s; it asks %s, and %s up", isJoining, cmp.Or(phrase.FirstNames(status.Remotes), "no address"), connections(status.Up))},
			Follows:  "it serves nothing, and does not count for the majority"}
		if leader.by == nil || !slices.ContainsFunc(leader.by.Adding, func(peer raft.Peer) bool { return peer.Connected && g.serverOf(peer) == server }) {
			g.whyJoining(joiner{server, status.Address, status.Database, status.Cluster, status.Remotes}, p)
		}
		found[server] = p
		problems = append(problems, p)
	}
	if leader.by == nil {
		return problems
	}
	for _, peer := range leader.by.Adding {
		server := g.serverOf(peer)
		if g.member(server) != nil {
			continue // its file tells
		}
		p := found[server]
		if p == nil {
			p = &Problem{Kind: StuckJoining, Severity: Error, Servers: []string{server}, What: fmt.Sprintf("%s at %s has not joined the cluster", peer.Short, peer.Address),
				Follows: "it serves nothing, and does not count for the majority"}
			problems = append(problems, p)
		}
		g.adding(p, peer)
	}
	return problems
}

func connections(up int) string {
	if up == 1 {
		return "1 of its connections is"
	}
	return fmt.Sprintf("%d of its connections are", up)
}

// adding adds what the leader says of a server that it is adding. One that is connected gets the data now.
func (g *group) adding(p *Problem, peer raft.Peer) {
	leader := g.leader()
	evidence := fmt.Sprintf("cluster/status of the leader %s: Adding server %s at %s (%s)", g.name(leader.server), peer.Short, peer.Address, peer.Phase)
	if server := g.serverOf(peer); g.waitsForRefused(server) {
		p.What, p.Repair = fmt.Sprintf("%s at %s has not joined the cluster: %s", peer.Short, peer.Address, g.refusedAnswer(server)), g.leadAnew(peer.Address)
	} else if peer.Connected {
		p.Severity, p.What = Note, fmt.Sprintf("%s at %s is joining: the leader sends it the data now", peer.Short, peer.Address)
		p.Follows = "if it stays so for minutes, the data does not arrive whole: collect the logs of both servers"
	} else if leader.by.Connections {
		evidence += ", without a connection"
		if len(p.Repair) == 0 {
			p.What += ": the leader has lost the connection with it"
			plan := g.plan().start(peer.Address, "start its ovsdb-server again, which joins anew, or give it back the connection to "+g.address(leader.server))
			p.Repair = plan.waitMember(peer.Address).steps
		}
	}
	p.Evidence = append(p.Evidence, evidence)
}

// stops returns why the cluster elects no leader, nil if it does.
func (g *group) stops() []*Problem {
	if g.newest != nil {
		return g.quorum()
	}
	return append(g.noMajorityPrinted(), g.noLeaderPrinted()...)
}

// whyJoining adds the cause and the repair.
func (g *group) whyJoining(m joiner, p *Problem) {
	cause := func(format string, args ...any) { p.What += ": " + fmt.Sprintf(format, args...) }
	if g.newest == nil && len(g.config) == 0 {
		cause("no file or status of a server at its remote addresses was given, so the reason is not known here")
		p.Repair = g.plan().look("collect the files of the cluster's members, or their cluster/status, as well").steps
		return
	}
	live := g.live()
	reach := slices.DeleteFunc(slices.Clone(m.remotes), func(address string) bool { return !slices.Contains(live, address) })
	switch {
	case m.database != g.database:
		cause("it is of the database %s, and the servers at its remote addresses have %s", m.database, g.database)
		p.Repair = g.joinAnew(m)
	case m.cluster != "" && m.cluster != g.id:
		cause("it wants the cluster %s, and that at its remote addresses is %s", short(m.cluster), short(g.id))
		p.Repair = g.joinAnew(m)
	case len(g.stops()) > 0:
		cause("the cluster has no majority or no leader, and only a leader can let it join")
		p.Repair = g.plan().look("repair the cluster first (see above); the server then joins by itself").steps
	case g.config[m.server] != "":
		cause("the cluster counts it as a member already, and it does not know that")
		p.Repair = g.plan().stop(m.address).start(m.address, startAgain+": the leader then sends it the data").waitMember(m.address).steps
	case g.waitsForRefused(m.server):
		cause("%s", g.refusedAnswer(m.server))
		p.Repair = g.leadAnew(m.address)
	case len(reach) == 0:
		cause("%s", g.deadEnd(m))
		p.Repair = g.joinAnew(m)
	default:
		cause("%s can be joined and %s no obstacle, so the connection to it fails (a filter, a certificate), or the server was not started", phrase.FirstNames(reach), g.shown())
		if old := g.atAddress(m.address, m.server); len(old) > 0 && g.newest == nil {
			p.What += fmt.Sprintf(". Its address is still counted under another id, %s: it joins under a new one", shorts(old))
		}
		plan := g.plan()
		for _, server := range g.atAddress(m.address, m.server) {
			plan.kick(server)
		}
		p.Repair = plan.start(m.address, "start its ovsdb-server if it does not run, or give it the connection to "+phrase.FirstNames(reach)).waitMember(m.address).steps
	}
}

// waitsForRefused reports whether the leader waits for an answer of a joining server that it has refused: it began to add the server in an
// earlier term, whose number the server still has, lost the leadership and was elected again. An ovsdb-server of an Open vSwitch with that defect
// waits for ever, and tells the server that the join is in progress (ovsdb/raft.c; ovn-org/ovn, issue 235).
func (g *group) waitsForRefused(server string) bool {
	leader, status := g.leader(), g.statuses[server]
	return leader.by != nil && status != nil && status.state() == isJoining && status.Term > 0 && status.Term < leader.term &&
		slices.ContainsFunc(leader.by.Adding, func(peer raft.Peer) bool { return peer.Connected && g.serverOf(peer) == server })
}

// refusedAnswer says what the leader waits for.
func (g *group) refusedAnswer(server string) string {
	leader := g.leader()
	return fmt.Sprintf("the leader %s began to add it in term %d, lost the leadership meanwhile, and waits in term %d for an answer that it has refused",
		g.name(leader.server), g.statuses[server].Term, leader.term)
}

// leadAnew starts the leader again, which forgets what it waits for; a joining server asks again by itself.
func (g *group) leadAnew(joining string) []Step {
	leader := g.address(g.leader().server)
	return g.plan().stop(leader).start(leader, startAgain+": another server leads meanwhile, and adds the one that joins").waitMember(joining).steps
}

// shown names what was read of the cluster.
func (g *group) shown() string {
	if g.newest == nil {
		return "the statuses show"
	}
	return "the files show"
}

// live returns the addresses of the members that take part in the cluster. A member takes part if it
// knows the latest term.
func (g *group) live() (list []string) {
	for _, m := range g.voters() {
		if m.log.KnownTerm() >= g.newest.log.LastTerm() && (m.status == nil || m.status.Apart() == "") {
			list = append(list, m.log.Address)
		}
	}
	unreached := g.unreached()
	for _, server := range g.absent() {
		dead := slices.ContainsFunc(g.dead(), func(p *Problem) bool { return slices.Contains(p.Servers, server) }) || slices.Contains(unreached, server)
		if status := g.statuses[server]; !dead && (status == nil || status.Apart() == "") {
			list = append(list, g.config[server])
		}
	}
	return list
}

// deadEnd says why no server at the remote addresses of a server lets it join.
func (g *group) deadEnd(m joiner) string {
	var out []string
	for _, address := range m.remotes {
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
func (g *group) joinAnew(m joiner) []Step {
	p := g.plan().stop(m.address)
	for _, server := range g.atAddress(m.address, m.server) {
		p.kick(server)
	}
	live := slices.DeleteFunc(g.live(), func(address string) bool { return address == m.address })
	slices.Sort(live)
	if len(live) == 0 {
		live = g.remotes(m.address)
	}
	p.setAside(m.address).join(m.address, g.id, live)
	return p.start(m.address, startAgain).waitMember(m.address).steps
}
