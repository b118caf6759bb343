package cluster

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"ovs-offline/pkg/ovsdb/raft"
)

// repairMember returns the repair of a member whose file is of no use: it joins again if the others
// are a majority, or else their data is restored first.
func (g *group) repairMember(m *member) []Step {
	if g.lacksMajorityWithout(m) {
		return g.plan().look("the other servers are no majority: repair that first; this server joins the new cluster then").steps
	}
	return g.rejoin(m)
}

// lacksMajorityWithout reports whether the members but for one cannot commit anything.
func (g *group) lacksMajorityWithout(m *member) bool {
	others := 0
	for _, other := range g.voters() {
		if other != m {
			others++
		}
	}
	return others+len(g.absent()) < g.majority() && !g.serves()
}

// refused finds members on whose files ovsdb-server does not start, or that lost records.
func (g *group) refused() (problems []*Problem) {
	for _, m := range g.members {
		if m.state != Refused {
			continue
		}
		p := &Problem{Kind: RefusedLog, Severity: Error, Servers: []string{m.server()}, At: m.log.LastTime(m.log.Committed),
			What:     fmt.Sprintf("ovsdb-server does not start on the file of %s: its log is broken", g.name(m.server())),
			Evidence: []string{m.given.Name + ": " + m.log.Refused},
			Follows:  "the server is missing in the cluster", Repair: g.repairMember(m)}
		if m.log.Gap {
			p.What += ": entries are missing in it, as after a full disk that got room for later records while the server ran"
		}
		if m.log.Refused == "" {
			p.Kind, p.What = LostRecords, fmt.Sprintf("records in the middle of the file of %s are lost", g.name(m.server()))
			p.Evidence = []string{fmt.Sprintf("%s: %s; ovsdb-server ignores the %d records after it", m.given.Name, m.log.Damage, m.log.Ignored)}
			p.Follows = "the server starts without entries that it had confirmed: they can be lost for the whole cluster"
		}
		problems = append(problems, p)
	}
	return problems
}

// cutOff finds files that end inside a record: the disk was full, or the server was killed while it
// wrote.
func (g *group) cutOff() (problems []*Problem) {
	for _, m := range g.members {
		if m.state != Cut {
			continue
		}
		p := &Problem{Kind: CutOff, Severity: Warning, Servers: []string{m.server()}, At: m.log.LastTime(m.log.Last()),
			What:     fmt.Sprintf("the file of %s ends inside a record: its disk was full, or the server ended while it wrote", g.name(m.server())),
			Evidence: []string{m.given.Name + ": " + m.log.Damage},
			Follows:  fmt.Sprintf("the server did not confirm that record, so nothing that was committed is lost; the server has entries up to %d", m.log.Last())}
		p.Repair = g.makeRoom(m.log.Address)
		problems = append(problems, p)
	}
	return problems
}

// makeRoom ends a server before its disk gets room: one that goes on writing leaves a gap in its file.
func (g *group) makeRoom(address string) []Step {
	file, _ := g.place(address)
	plan := g.plan().stop(address).add(address, Run, "df -h "+path.Dir(file), "make room, while the server does not run: for the file twice, since it is compacted into a new one")
	return plan.start(address, startAgain+": it drops what is half written, and catches up").waitMember(address).steps
}

// cannotWrite returns the servers that say they failed, or say that they have entries that are not in
// their files while the leader gets no confirmation from them.
func (g *group) cannotWrite() (list []string) {
	silent := g.silent()
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		status, m := g.statuses[server], g.member(server)
		hushed := slices.ContainsFunc(silent, func(peer silentPeer) bool { return peer.server == server })
		if status.state() == hasFailed || m != nil && hushed && status.Last > m.log.Last() {
			list = append(list, server)
		}
	}
	return list
}

// failed finds servers that could not write. One whose file is broken already is among those of refused, with another repair.
func (g *group) failed() (problems []*Problem) {
	for _, server := range g.cannotWrite() {
		if m := g.member(server); m != nil && m.state == Refused {
			continue
		}
		status := g.statuses[server]
		p := &Problem{Kind: Failed, Severity: Error, Servers: []string{server},
			What:    fmt.Sprintf("%s cannot write its file: its disk is full or broken", g.name(server)),
			Follows: "it confirms nothing to the leader, so it counts as lost for the majority. If its disk gets room while it runs, its file gets a gap, and the server never starts on it again",
			Repair:  g.makeRoom(status.Address)}
		p.Evidence = []string{fmt.Sprintf("cluster/status: Status: %s; its last entry is %d", status.state(), status.Last)}
		if m := g.member(server); m != nil {
			p.Evidence = append(p.Evidence, fmt.Sprintf("%s: the last entry in the file is %d", m.given.Name, m.log.Last()))
		}
		for _, peer := range g.silent() {
			if peer.server == server {
				p.Evidence = append(p.Evidence, peer.evidence)
			}
		}
		problems = append(problems, p)
	}
	return problems
}

// gone finds servers that have left or were removed, whose files are still there.
func (g *group) gone() (problems []*Problem) {
	for _, m := range g.members {
		if m.state != Left && m.state != Removed {
			continue
		}
		replaced := slices.ContainsFunc(g.members, func(other *member) bool {
			return other != m && other.log.Address == m.log.Address && g.config[other.server()] != ""
		})
		p := &Problem{Kind: HasLeft, Severity: Warning, Servers: []string{m.server()}, At: m.log.LastTime(m.log.Committed),
			What:    fmt.Sprintf("%s has left the cluster, and its file is still there", g.name(m.server())),
			Follows: "a server that has left can never come back with this file: ovsdb-server refuses to start on it"}
		p.Evidence = []string{m.given.Name + `: a record says that the server "left"`}
		if m.state == Removed {
			p.Kind, p.What = WasRemoved, fmt.Sprintf("%s was removed from the cluster (cluster/kick), and its file is still there", g.name(m.server()))
			_, since := g.newest.log.ServersAt(g.upTo)
			p.Evidence = []string{fmt.Sprintf("%s: entry %d has the servers %s", g.newest.given.Name, since, describe(g.committed)),
				fmt.Sprintf("%s: its log ends at entry %d", m.given.Name, m.log.Last())}
			p.Follows = "a server that starts on this file asks the others for votes forever, and serves nothing"
			if n := m.log.Elections(); n > 0 {
				p.Severity = Error
				p.Evidence = append(p.Evidence, fmt.Sprintf("%s: it asked for votes in vain up to term %d", m.given.Name, m.log.CurrentTerm))
			}
			if m.status != nil && m.status.Apart() != "" {
				p.Severity = Error
				p.Evidence = append(p.Evidence, "cluster/status: "+m.status.Apart())
			}
		}
		if replaced {
			p.Severity, p.Follows = Note, "another server at this address is a member: the file is of no use"
		} else {
			p.Repair = append(g.plan().look("to have a server there again, it joins with a new file; otherwise only end it and move its file").steps, g.rejoin(m)...)
		}
		problems = append(problems, p)
	}
	return problems
}

// sameServer finds further files of one server: older ones are of no interest, and others mean that
// two servers run on copies of one file.
func (g *group) sameServer(ctx context.Context) (problems []*Problem) {
	for _, m := range g.older {
		first := g.member(m.server())
		found, err := raft.Contradictions(ctx, []*raft.Member{first.log, m.log})
		conflict := raft.Conflict(first.log, m.log)
		if err == nil && len(found) == 0 && conflict == 0 && first.log.Address == m.log.Address {
			problems = append(problems, &Problem{Kind: SameServer, Severity: Note, Servers: []string{m.server()},
				What: fmt.Sprintf("%s is an older file of %s: the newer one counts", m.given.Name, g.name(m.server()))})
			continue
		}
		problems = append(problems, &Problem{Kind: SameServer, Severity: Error, Servers: []string{m.server()},
			What:     fmt.Sprintf("%s and %s are of one server (%s), and differ: its file was copied, and two servers run on it", first.given.Name, m.given.Name, short(m.server())),
			Evidence: []string{fmt.Sprintf("entries %d to %d, and entries %d to %d", first.log.First(), first.log.Last(), m.log.First(), m.log.Last())},
			Follows:  "the others can't tell the two apart: entries that one confirmed are missing on the other",
			Repair:   g.plan().look(fmt.Sprintf("end the server of %s, move its file away, and let it join with a new one (ovsdb-tool join-cluster)", m.given.Name)).steps})
	}
	return problems
}

// behind finds members that lack much of the log.
func (g *group) behind() (problems []*Problem) {
	const many = 1000
	newest := g.newest.log
	for _, m := range g.voters() {
		if m == g.newest || m.log.Last() >= g.upTo || slices.Contains(g.candidates(), m) {
			continue
		}
		missing := g.upTo - m.log.Last()
		since := time.Time{}
		if entry := newest.At(m.log.Last() + 1); entry != nil {
			since = newest.LastTime(m.log.Last() + 1)
		}
		if taken := m.given.Taken; !taken.IsZero() && since.After(taken) {
			continue // the file was copied before
		}
		p := &Problem{Kind: Behind, Severity: Note, Servers: []string{m.server()}, At: m.log.LastTime(m.log.Committed),
			What: fmt.Sprintf("%s lacks the last %d committed entries: it does not run or cannot write, or its file was copied earlier than the others", g.name(m.server()), missing),
			Evidence: []string{fmt.Sprintf("%s: its log ends at entry %d of term %d", m.given.Name, m.log.Last(), m.log.LastTerm()),
				fmt.Sprintf("%s: entries up to %d are committed", g.newest.given.Name, g.upTo)},
			Follows: "its clients see old data until it has caught up"}
		if m.log.KnownTerm() < newest.LastTerm() || missing > many || m.log.Last() < newest.Index {
			p.Severity = Warning
			p.Evidence = append(p.Evidence, fmt.Sprintf("it knows nothing of the terms after %d; the cluster is in term %d", m.log.KnownTerm(), newest.LastTerm()))
			if m.log.KnownTerm() >= newest.LastTerm() {
				p.Evidence = p.Evidence[:2]
			}
		}
		p.Repair = g.plan().start(m.log.Address, "start its ovsdb-server if it does not run: it catches up by itself").waitMember(m.log.Address).steps
		problems = append(problems, p)
	}
	return problems
}

// pending finds a change of the servers that is not committed.
func (g *group) pending() []*Problem {
	if maps.Equal(g.config, g.committed) {
		return nil
	}
	var added, removed []string
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if g.committed[server] == "" {
			added = append(added, server)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(g.committed)) {
		if g.config[server] == "" {
			removed = append(removed, server)
		}
	}
	what := "a change of the servers is not committed:"
	if len(added) > 0 {
		what += " it adds " + g.names(added)
	}
	if len(removed) > 0 {
		what += " it removes " + g.names(removed)
	}
	_, since := g.newest.log.ServersAt(g.newest.log.Last())
	return []*Problem{{Kind: PendingServers, Severity: Note, What: what, Servers: append(added, removed...),
		Evidence: []string{fmt.Sprintf("%s: entry %d; entries up to %d are committed", g.newest.given.Name, since, g.upTo)},
		Follows:  fmt.Sprintf("the servers count it already: %d of %d have to agree, and no other change of servers begins before", g.majority(), len(g.config))}}
}

// uncommitted finds entries that are not committed. It says whether the cluster will commit them, and
// which entries the other members have replaced.
func (g *group) uncommitted() (problems []*Problem) {
	for _, m := range g.voters() {
		conflict := raft.Conflict(m.log, g.newest.log)
		if m == g.newest || conflict == 0 {
			continue
		}
		problems = append(problems, &Problem{Kind: Uncommitted, Severity: Note, Servers: []string{m.server()}, At: m.log.LastTime(m.log.Last()),
			What:     fmt.Sprintf("%s has entries %d to %d that the other members do not have: they were never committed, and it drops them when it catches up", g.name(m.server()), conflict, m.log.Last()),
			Evidence: []string{fmt.Sprintf("%s: entry %d is of term %d; %s: of term %d", m.given.Name, conflict, m.log.At(conflict).Term, g.newest.given.Name, g.newest.log.At(conflict).Term)},
			Follows:  "the clients that sent these changes got no confirmation, and sent them again or gave up"})
	}
	last := g.newest.log.Last()
	if last == g.upTo {
		return problems
	}
	holders := 0
	for _, m := range g.voters() {
		if entry := m.log.At(last); entry != nil && entry.ID == g.newest.log.At(last).ID {
			holders++
		}
	}
	return append(problems, &Problem{Kind: Uncommitted, Severity: Note, Servers: []string{g.newest.server()}, At: g.newest.log.LastTime(last),
		What:    fmt.Sprintf("entries %d to %d of %s are not known to be committed; %d of %d servers have the last one here", g.upTo+1, last, g.name(g.newest.server()), holders, len(g.config)),
		Follows: fmt.Sprintf("the next leader commits them if it has them; a majority is %d", g.majority())})
}
