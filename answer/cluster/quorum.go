package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/pkg/ovsdb/raft"
)

// serves reports whether the output of a server shows that the cluster had a leader.
func (g *group) serves() bool {
	for _, status := range g.statuses {
		if status.Apart() == "" && status.Leader != "" {
			return true
		}
	}
	return false
}

// candidates returns the members that asked for votes in vain at the end of their logs, and the members
// whose printed status says that they know no leader.
func (g *group) candidates() (list []*member) {
	for _, m := range g.voters() {
		if m.log.Elections() > 1 || m.status != nil && m.status.Apart() != "" && m.status.state() != hasFailed {
			list = append(list, m)
		}
	}
	return list
}

// quorum finds a cluster without a majority: because files are lost, or because servers do not run
// or can't reach each other.
func (g *group) quorum() []*Problem {
	voters, absent, tried := g.voters(), g.absent(), g.candidates()
	need := g.majority()
	switch {
	case g.serves():
		return nil
	case len(voters) >= need:
		return g.noLeader(voters, tried)
	case len(voters)+len(absent) >= need && len(tried) == 0:
		return nil // the servers whose files were not given may be well
	}
	p := &Problem{Kind: NoQuorum, Severity: Error, At: g.newest.log.LastTime(g.newest.log.Last()),
		What:    fmt.Sprintf("%s has no majority: %d of its %d servers have a usable file here, and %d are needed", g.database, len(voters), len(g.config), need),
		Follows: "no change is possible, no leader is elected, and no server can be removed or join with ovs-appctl"}
	for _, m := range g.members {
		if _, counts := g.config[m.server()]; counts {
			p.Evidence = append(p.Evidence, g.name(m.server())+": "+g.usability(m))
		}
	}
	for _, server := range absent {
		p.Evidence = append(p.Evidence, g.name(server)+": no file of it was given")
		p.Servers = append(p.Servers, server)
	}
	keep := g.bestData()
	plan := g.plan()
	if len(voters)+len(absent) >= need {
		plan.look(fmt.Sprintf("first try to bring back the missing servers with their files: with %d of them the cluster serves again, and nothing is lost. Only if that is impossible, go on", need-len(voters)))
	}
	lost := fmt.Sprintf("the data of %s is kept: its log ends at entry %d of term %d", g.name(keep.server()), keep.log.Last(), keep.log.LastTerm())
	if at := keep.log.LastTime(keep.log.Last()); !at.IsZero() {
		lost += " (" + show.Time(at) + ")"
	}
	plan.look(lost + ". What only the lost servers had is lost")
	p.Repair = append(plan.steps, g.restore(keep)...)
	return []*Problem{p}
}

// usability says whether a file counts for the majority.
func (g *group) usability(m *member) string {
	switch {
	case m.log.Left:
		return "it has left the cluster"
	case m.log.Refused != "":
		return "ovsdb-server refuses its file: " + m.log.Refused
	case m.log.Ignored > 0:
		return "records of its file are lost: " + m.log.Damage
	case !m.log.Belongs():
		return "its file does not count it as a member"
	}
	text := fmt.Sprintf("its file is sound, its log ends at entry %d of term %d", m.log.Last(), m.log.LastTerm())
	if n := m.log.Elections(); n > 0 {
		text += fmt.Sprintf(", and it asked for votes in vain %s, up to term %d", phrase.Count(n, "time"), m.log.CurrentTerm)
	}
	if m.status != nil && m.status.Apart() != "" {
		text += "; " + m.status.Apart()
	}
	return text
}

// bestData returns the member whose data is to be kept: the newest whose file a server accepts, or
// else the newest.
func (g *group) bestData() *member {
	if voters := g.voters(); len(voters) > 0 {
		return voters[0]
	}
	return g.newest
}

// noLeader finds a cluster whose files are sound and whose servers elected no leader.
func (g *group) noLeader(voters, tried []*member) []*Problem {
	if len(tried) == 0 {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(voters), func(m *member) bool { return slices.Contains(tried, m) })
	if g.goesOn(rest, tried) { // the servers that tried are apart
		return nil
	}
	absent := g.absent()
	missing := append(serversOf(rest), absent...)
	p := &Problem{Kind: NoLeader, Severity: Error, Servers: missing, At: g.newest.log.LastTime(g.newest.log.Last()),
		What:    fmt.Sprintf("%s has no leader: %s asked for votes in vain, and %s did not answer", g.database, g.names(serversOf(tried)), cmp.Or(g.names(missing), "the others")),
		Follows: "no change is possible until a majority of the servers runs and reaches each other; the data is whole"}
	if len(rest) >= g.majority() {
		p.What = fmt.Sprintf("%s asked for votes in vain: %s do not run, or it can't reach them", g.names(serversOf(tried)), g.names(missing))
		p.Follows = fmt.Sprintf("if they do not run, %s takes no change; the data is whole", g.database)
	}
	for _, m := range voters {
		p.Evidence = append(p.Evidence, g.name(m.server())+": "+g.usability(m))
	}
	plan := g.plan()
	plan.look(fmt.Sprintf("%d of %d servers have to run and reach each other; no file needs a repair", g.majority(), len(g.config)))
	for _, server := range missing {
		plan.start(g.address(server), "start its ovsdb-server if it does not run, or give it back the connection to the addresses of the others: "+phrase.FirstNames(g.remotes(g.address(server))))
	}
	for _, server := range missing {
		if g.member(server) != nil {
			plan.waitMember(g.address(server))
		}
	}
	p.Repair = plan.steps
	return []*Problem{p}
}

// goesOn reports whether some members went on without the others: they committed entries that the
// others lack, or know of a later leader.
func (g *group) goesOn(some, others []*member) bool {
	for _, m := range some {
		for _, other := range others {
			if m.log.Committed > other.log.Last() || m.log.LastTerm() > other.log.LastTerm() {
				return true
			}
		}
	}
	return false
}

// apart finds members that ask for votes in vain while the others go on.
func (g *group) apart() (problems []*Problem) {
	voters := g.voters()
	for _, m := range g.candidates() {
		rest := slices.DeleteFunc(slices.Clone(voters), func(other *member) bool { return other == m || slices.Contains(g.candidates(), other) })
		if len(rest) == 0 || !g.goesOn(rest, []*member{m}) && !g.serves() {
			continue
		}
		p := &Problem{Kind: Apart, Severity: Error, Servers: []string{m.server()}, At: m.log.LastTime(m.log.Committed),
			What:    fmt.Sprintf("%s is apart from the cluster: it asks for votes in vain, while %s go on", g.name(m.server()), g.names(serversOf(rest))),
			Follows: "its clients see old data and can change nothing; once it is back, its higher term costs the cluster one election",
			Evidence: []string{g.name(m.server()) + ": " + g.usability(m),
				fmt.Sprintf("%s: its log ends at entry %d of term %d", g.name(rest[0].server()), rest[0].log.Last(), rest[0].log.LastTerm())}}
		plan := g.plan().look("its file needs no repair: it catches up once it reaches the others")
		plan.start(m.log.Address, "give it back the connection to the addresses of the others, both ways: "+phrase.FirstNames(g.remotes(m.log.Address)))
		p.Repair = plan.waitMember(m.log.Address).steps
		problems = append(problems, p)
	}
	return problems
}

// dead finds servers of the configuration that are gone: the leader hears nothing of them, or another
// server has their address.
func (g *group) dead() (problems []*Problem) {
	reported := map[string]bool{}
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		m := g.successor(server)
		if m == nil {
			continue
		}
		reported[server] = true
		problems = append(problems, g.deadServer(server, SameAddress, Error, fmt.Sprintf("%s is still counted, and its address is that of %s now", g.name(server), g.name(m.server())),
			fmt.Sprintf("%s has the address %s, and both servers are in the configuration", m.given.Name, m.log.Address)))
	}
	for _, server := range g.cannotWrite() {
		reported[server] = true
	}
	if g.newest == nil && len(g.noMajorityPrinted()) > 0 {
		return problems // which names them, and no server can be removed
	}
	for _, silent := range g.silent() {
		own := g.statuses[silent.server]
		if reported[silent.server] || g.sharesAddress(silent.server) || g.newest == nil && own != nil && own.Apart() != "" { // it runs, and is apart
			continue
		}
		reported[silent.server] = true
		what := fmt.Sprintf("%s does not answer the leader", g.name(silent.server))
		if silent.Connected {
			what += ", though it is connected: it hangs, or its disk is full"
		}
		problems = append(problems, g.deadServer(silent.server, Dead, Warning, what, silent.evidence))
	}
	return problems
}

// successor returns the member that has the address of a server of the configuration now: one that
// the configuration has too, and whose file is the newer one. It is nil if there is none.
func (g *group) successor(server string) *member {
	for _, m := range g.members { // the newest first
		if m.server() == server {
			return nil
		}
		if m.log.Address == g.config[server] && g.config[m.server()] != "" {
			return m
		}
	}
	return nil
}

// silentPeer is a server of which the leader hears nothing.
type silentPeer struct {
	raft.Peer
	server, evidence string
}

// silent returns the servers of the configuration of which the leader had heard nothing for two
// election timers: they confirm a heartbeat three times in each.
func (g *group) silent() (list []silentPeer) {
	for _, id := range slices.Sorted(maps.Keys(g.statuses)) {
		status := g.statuses[id]
		if status.Leader != "self" || g.leader().server != id {
			continue
		}
		limit := status.limit()
		for _, peer := range status.Peers {
			server := g.byShort(peer.Short, peer.Address)
			lost := g.newest == nil && status.Connections && !peer.Connected // no file shows whether the server went on
			if server == "" || server == id || peer.Self || peer.Silent >= 0 && peer.Silent < limit && !lost || peer.Silent < 0 && (peer.Connected || !status.Connections) {
				continue
			}
			evidence := "it never heard of it"
			switch {
			case peer.Silent >= 0:
				evidence = fmt.Sprintf("its last message was %v ago", time.Duration(peer.Silent)*time.Millisecond)
				if lost {
					evidence += ", and no connection is up"
				}
			case !status.hasTimes():
				evidence = "no connection is up"
			}
			list = append(list, silentPeer{peer, server, fmt.Sprintf("cluster/status of the leader %s: of %s, %s", g.name(id), peer.Address, evidence)})
		}
	}
	return list
}

// byShort returns the server of the configuration that a status prints.
func (g *group) byShort(short, address string) string {
	for server, known := range g.config {
		if known == address && server[:min(4, len(server))] == short {
			return server
		}
	}
	return ""
}

func (g *group) deadServer(server string, kind Kind, severity Severity, what, evidence string) *Problem {
	left := len(g.config) - 1
	p := &Problem{Kind: kind, Severity: severity, Servers: []string{server}, What: what, Evidence: []string{evidence},
		Follows: fmt.Sprintf("it counts for the majority: with it, %d of %d servers have to run; without it, %d of %d", g.majority(), len(g.config), left/2+1, left)}
	plan := g.plan()
	if kind == Dead {
		plan.look("if it can come back with its file, start it again, with room on its disk: it catches up by itself. Only if it is gone for good, go on")
	}
	p.Repair = plan.kick(server).steps
	if kind == Dead {
		file, _ := g.place(g.config[server])
		p.Repair = append(p.Repair, Step{Server: g.config[server], On: plan.on(g.config[server]), Action: Look,
			Text: fmt.Sprintf("a new server at this address joins with ovsdb-tool --cid=%s join-cluster %s %s %s %s", g.id, file, g.database, g.config[server], strings.Join(g.remotes(g.config[server]), " "))})
	}
	return p
}

// noFile notes servers without a file, where nothing else is known about them.
func (g *group) noFile() []*Problem {
	absent := g.absent()
	if len(absent) == 0 || g.serves() || len(g.quorum()) > 0 {
		return nil
	}
	p := &Problem{Kind: NoFile, Severity: Note, Servers: absent,
		What:    fmt.Sprintf("no file was given of %s: whether they run is not known here", g.names(absent)),
		Follows: fmt.Sprintf("%d of %d servers have to run", g.majority(), len(g.config))}
	if len(g.voters()) >= g.majority() {
		plan := g.plan().look("only if such a server is gone for good")
		for _, server := range absent {
			plan.kick(server)
		}
		p.Repair = plan.steps
	} else {
		p.Repair = append(g.plan().look("only if so many of these servers are gone for good, with their files, that no majority is left: what only they had is lost").steps, g.restore(g.bestData())...)
	}
	return []*Problem{p}
}
