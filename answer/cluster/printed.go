package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// examineStatuses finds what outputs of cluster/status show of a cluster without files.
func (g *group) examineStatuses(c *Cluster, groups []*group) {
	c.Committed = g.config
	leader := g.leader()
	c.Leader = leader.server
	if lister := g.lister(); lister != nil {
		c.ElectionTimer = lister.ElectionTimer
	}
	c.Terms = g.termsPrinted()
	for _, problems := range [][]*Problem{
		g.twoClusters(groups), g.noMajorityPrinted(), g.noLeaderPrinted(), g.joining(groups), g.joiningPrinted(), g.sameAddress(), g.dead(), g.unreachedPrinted(),
		g.failed(), g.gonePrinted(), g.apartPrinted(), g.lagging(), g.changing(), g.backlog(), g.timersPrinted(),
	} {
		c.Problems = append(c.Problems, problems...)
	}
	c.Problems = append(c.Problems, g.notConnected(c.Problems)...)
	slices.SortStableFunc(c.Problems, func(a, b *Problem) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	c.Unknown = g.unknown()
}

// latestTerm returns the latest term that a status has.
func (g *group) latestTerm() (term int64) {
	for _, status := range g.statuses {
		term = max(term, status.Term)
	}
	return term
}

// termsPrinted returns the term of the leader, and the later ones that servers are in which know none.
func (g *group) termsPrinted() []Term {
	terms, leader, latest := []Term{}, g.leader(), g.latestTerm()
	first := latest
	if leader.server != "" {
		terms = append(terms, Term{First: leader.term, Last: leader.term, Leader: leader.server})
		first = leader.term + 1
	}
	if latest > leader.term {
		terms = append(terms, Term{First: first, Last: latest, Unknown: true})
	}
	return terms
}

// unknown says what outputs of cluster/status do not tell.
func (g *group) unknown() []string {
	if len(g.statuses) == 0 {
		return nil
	}
	list := []string{"what the databases hold, and whether the logs of the servers agree: only their files show that"}
	if mute := g.mute(); len(mute) > 0 {
		list = append(list, fmt.Sprintf("what %s %s of the cluster: no cluster/status of %s was given", g.names(mute), verb(len(mute), "sees", "see"), verb(len(mute), "it", "them")))
	}
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		switch status := g.statuses[server]; {
		case status.state() == isJoining:
		case len(status.Peers) == 0:
			list = append(list, fmt.Sprintf("the servers that %s knows: the text has no list of them", g.name(server)))
		case !status.Connections:
			list = append(list, fmt.Sprintf("with which servers %s has a connection: the text has no list of connections", g.name(server)))
		}
	}
	return list
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// statusRows returns a row for each server of a cluster without files.
func (g *group) statusRows() (rows []*Server) {
	known := maps.Clone(g.config)
	if known == nil {
		known = map[string]string{}
	}
	for server, status := range g.statuses {
		known[server] = status.Address
	}
	for server, address := range known {
		row := &Server{ID: server, Address: address, State: Unseen}
		if status := g.statuses[server]; status != nil {
			row.Name, row.State, row.Status, row.Role, row.Term = status.name, g.printedState(status), status.state(), status.Role, status.Term
			row.First, row.Last, row.Leader = max(status.First-1, 0), status.Last, g.leaderIn(status)
			row.Committed = status.Last - max(status.Uncommitted, 0)
			if status.Connections {
				row.Connected = append([]string{}, g.reached(server)...)
			}
		}
		if g.member(server) == nil {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b *Server) int { return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.ID, b.ID)) })
	return rows
}

// printedState returns the state of a server by its status.
func (g *group) printedState(status *printed) State {
	switch {
	case status.state() == isJoining:
		return Joining
	case status.state() == hasLeft:
		return Left
	case status.state() == hasFailed:
		return Broken
	case g.wasRemoved(status):
		return Removed
	case status.Apart() != "":
		return Alone
	}
	return Sound
}

// spoken returns what a server printed, in a line.
func (g *group) spoken(server string) string {
	status := g.statuses[server]
	text := fmt.Sprintf("%s: %s in term %d", g.name(server), cmp.Or(status.Role, "no role"), status.Term)
	if status.state() != "" && status.state() != "cluster member" {
		text += ", " + status.state()
	}
	text += fmt.Sprintf("; Leader: %s", cmp.Or(status.Leader, "not printed"))
	if leader := g.leaderIn(status); leader != "" && leader != server {
		text = strings.TrimSuffix(text, status.Leader) + short(leader)
	}
	if status.Connections {
		text += "; connected with " + cmp.Or(shorts(g.reached(server)), "none")
		lacks := slices.DeleteFunc(slices.Sorted(maps.Keys(g.config)), func(other string) bool {
			yes, known := g.connected(server, other)
			return yes || !known
		})
		if len(lacks) > 0 {
			text += ", not with " + shorts(lacks)
		}
	}
	return text + g.votes(status) + g.hushed(status) + g.moments(status)
}

// votes says who voted for a candidate.
func (g *group) votes(status *printed) string {
	if status.Role != "candidate" {
		return ""
	}
	var list []string
	for _, peer := range status.Peers {
		if peer.Vote != "" && (peer.Vote == status.Vote || status.Vote == "self" && strings.HasPrefix(status.Server, peer.Vote)) {
			list = append(list, peer.Short)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; the vote of " + phrase.FirstNames(list)
}

// hushed names the servers that are connected with a candidate and sent it nothing lately.
func (g *group) hushed(status *printed) string {
	var list []string
	for _, peer := range status.Peers {
		if status.Role == "candidate" && status.hasTimes() && peer.Connected && !peer.Self && (peer.Silent < 0 || peer.Silent > 2*status.limit()) {
			list = append(list, peer.Short)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; though connected, no message came lately from " + phrase.FirstNames(list)
}

// moments says what changed between outputs of one server, and how often it lost connections.
func (g *group) moments(status *printed) (text string) {
	if len(status.earlier) > 0 && status.earlier[0].Term < status.Term {
		text = fmt.Sprintf("; its term rose from %d to %d between the outputs that were given", status.earlier[0].Term, status.Term)
	}
	if status.Disconnections > 0 {
		text += fmt.Sprintf("; %s since it started", phrase.Count(int(status.Disconnections), "disconnection"))
	}
	return text
}

// spokenBy returns what servers printed, a line each.
func (g *group) spokenBy(servers []string) (lines []string) {
	for _, server := range servers {
		lines = append(lines, g.spoken(server))
	}
	return lines
}

// noMajorityPrinted finds a cluster whose servers reach no majority.
func (g *group) noMajorityPrinted() []*Problem {
	speakers, need, most := g.speakers(), g.majority(), ""
	if len(speakers) == 0 || len(g.config) == 0 {
		return nil
	}
	for _, server := range speakers {
		if !g.statuses[server].Connections {
			return nil // it may reach all
		}
		if most == "" || len(g.reached(server)) > len(g.reached(most)) {
			most = server
		}
	}
	leader := g.leader().server
	if len(g.reached(most))+1 >= need || leader != "" && g.mayReach(leader) >= need {
		return nil
	}
	missing := g.unreached()
	p := &Problem{Kind: NoQuorum, Severity: Error, Servers: missing, Evidence: g.spokenBy(speakers),
		What:    fmt.Sprintf("%s has no majority: of its %d servers, %s reaches %d with itself, and %d are needed", g.database, len(g.config), g.name(most), len(g.reached(most))+1, need),
		Follows: "no change is possible, no leader is elected, and no server can be removed or join with ovs-appctl"}
	switch {
	case leader != "":
		p.Follows = "its leader commits nothing, and gives up within an election timer; no server can be removed or join with ovs-appctl"
	case g.canElect():
		p.Follows = fmt.Sprintf("no change is possible through %s", g.names(speakers))
	}
	if g.canElect() {
		p.Follows += ". Whether the others have a leader among themselves is not known here: the cluster/status of one of them tells"
	}
	switch {
	case len(missing) > 0 && len(speakers) > 1:
		p.What += "; none reaches " + g.names(missing)
	case len(missing) > 0:
		p.What += "; it does not reach " + g.names(missing)
	}
	p.Repair = g.bringBack(missing)
	return []*Problem{p}
}

// noLeaderPrinted finds a cluster whose servers reach a majority, and know no leader.
func (g *group) noLeaderPrinted() []*Problem {
	speakers := g.speakers()
	if len(speakers) == 0 || g.leader().server != "" || len(g.noMajorityPrinted()) > 0 {
		return nil
	}
	missing := g.unreached()
	p := &Problem{Kind: NoLeader, Severity: Error, Servers: missing, Evidence: g.spokenBy(speakers),
		What:    fmt.Sprintf("%s has no leader, as far as %s %s: an election is going on, or the servers that are needed do not answer", g.database, g.names(speakers), verb(len(speakers), "knows", "know")),
		Follows: "no change is possible until a leader is elected"}
	if g.canElect() && len(missing) > 0 {
		p.What += "; no connection with " + g.names(missing)
	}
	p.Repair = g.bringBack(missing)
	return []*Problem{p}
}

// bringBack is the repair of a cluster without leader: no command removes a server, and no status shows whose data is the newest.
func (g *group) bringBack(missing []string) []Step {
	plan := g.plan().look(fmt.Sprintf("%d of %d servers have to run and reach each other; a status shows no file that needs a repair", g.majority(), len(g.config)))
	if len(missing) == 0 {
		plan.look("give them back the connections to each other, both ways: " + phrase.FirstNames(slices.Sorted(maps.Values(g.config))))
	}
	for _, server := range missing {
		plan.start(g.address(server), "start its ovsdb-server if it does not run, or give it back the connection to the addresses of the others: "+phrase.FirstNames(g.remotes(g.address(server))))
	}
	for _, server := range missing {
		plan.waitMember(g.address(server))
	}
	return plan.look("only if so many servers are gone for good that no majority is left: give the command cluster the files of those that are left, which show whose data is the newest, and how to begin a new cluster with it").steps
}

// wasRemoved reports whether the leader does not list the server that printed a status.
func (g *group) wasRemoved(status *printed) bool {
	lister := g.lister()
	_, counts := g.config[status.Server]
	return !counts && status.takesPart() && lister != nil && lister.Leader == "self" && g.leader().by == lister && status.Cluster == g.id &&
		(status.Apart() != "" || status.Term < lister.Term)
}

// gonePrinted finds servers that have left, are leaving, or that the leader does not count.
func (g *group) gonePrinted() (problems []*Problem) {
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		status := g.statuses[server]
		p := &Problem{Kind: HasLeft, Severity: Warning, Servers: []string{server}, Evidence: []string{g.spoken(server)}}
		switch {
		case status.state() == isLeaving:
			p.What, p.Follows = g.name(server)+" is leaving the cluster", "it has left once a leader has committed that; until then it counts for the majority"
			if g.leader().server != "" {
				p.Severity = Note
			}
		case status.state() == hasLeft:
			p.What, p.Follows = g.name(server)+" has left the cluster, and its server still runs", "a server that has left can never come back with its file: ovsdb-server refuses to start on it"
			p.Repair = g.joinAgain(status)
		case g.wasRemoved(status):
			p.Kind, p.What = WasRemoved, g.name(server)+" was removed from the cluster (cluster/kick), and its server still runs"
			p.Follows = "a server that starts on this file asks the others for votes forever, and serves nothing"
			p.Evidence = append(p.Evidence, fmt.Sprintf("the leader %s counts %s", g.name(g.leader().server), describe(g.config)))
			if status.Apart() != "" {
				p.Severity = Error
			}
			p.Repair = g.joinAgain(status)
		default:
			continue
		}
		problems = append(problems, p)
	}
	return problems
}

// joinAgain lets the server at an address join with a new file.
func (g *group) joinAgain(status *printed) []Step {
	p := g.plan().look("to have a server there again, it joins with a new file; otherwise only end it and move its file").stop(status.Address)
	p.setAside(status.Address).join(status.Address, g.id, g.remotes(status.Address))
	return p.start(status.Address, startAgain).waitMember(status.Address).steps
}

// apartPrinted finds servers that know no leader while another one has one.
func (g *group) apartPrinted() (problems []*Problem) {
	leader := g.leader()
	for _, server := range g.speakers() {
		status := g.statuses[server]
		if leader.server == "" || status.Apart() == "" || status.state() == isLeaving || g.wasRemoved(status) || len(g.noMajorityPrinted()) > 0 {
			continue
		}
		leads := fmt.Sprintf("%s leads in term %d", g.name(leader.server), leader.term)
		if leader.by.Server != leader.server {
			leads += fmt.Sprintf(", as %s says", g.name(leader.by.Server))
		}
		p := &Problem{Kind: Apart, Severity: Error, Servers: []string{server},
			What:     fmt.Sprintf("%s is apart from the cluster: it knows no leader, while %s", g.name(server), leads),
			Evidence: []string{g.spoken(server), g.spoken(leader.by.Server)},
			Follows:  "its clients see old data and can change nothing"}
		if status.Term > leader.term {
			p.Follows += "; once it is back, its higher term costs the cluster one election"
		}
		plan := g.plan().look("its file needs no repair as far as a status tells: it catches up once it reaches the others")
		plan.start(status.Address, "give it back the connection to the addresses of the others, both ways: "+phrase.FirstNames(g.remotes(status.Address)))
		p.Repair = plan.waitMember(status.Address).steps
		problems = append(problems, p)
	}
	return problems
}

// unreachedPrinted finds servers that answer none of those that printed a status, where the status of the leader does not
// tell since when.
func (g *group) unreachedPrinted() (problems []*Problem) {
	leader := g.leader()
	if leader.server == "" || leader.by.Server == leader.server || len(g.noMajorityPrinted()) > 0 {
		return nil
	}
	for _, server := range g.unreached() {
		if g.sharesAddress(server) {
			continue
		}
		p := &Problem{Kind: Dead, Severity: Warning, Servers: []string{server}, Evidence: g.spokenBy(g.speakers()),
			What:    fmt.Sprintf("%s does not answer: no server whose status was given has a connection with it", g.name(server)),
			Follows: fmt.Sprintf("if it does not run, %d of the other %d servers have to", g.majority(), len(g.config)-1)}
		if server == leader.server {
			p.What = fmt.Sprintf("%s does not answer, and %s still takes it for the leader of term %d", g.name(server), g.name(leader.by.Server), leader.term)
			p.Follows = "no change is possible until it answers or another leader is elected, within some election timers"
		}
		plan := g.plan().look("the status of the leader, or of this server, tells whether it runs; if it is gone for good, give that one: it shows whether the server can be removed")
		p.Repair = plan.start(g.address(server), "start its ovsdb-server if it does not run, or give it back the connection to the addresses of the others: "+phrase.FirstNames(g.remotes(g.address(server)))).waitMember(g.address(server)).steps
		problems = append(problems, p)
	}
	return problems
}

// sameAddress finds two servers of the configuration at one address: a server joined again under a new UUID.
func (g *group) sameAddress() (problems []*Problem) {
	for _, address := range slices.Compact(slices.Sorted(maps.Values(g.config))) {
		servers := g.atAddress(address, "")
		if len(servers) < 2 {
			continue
		}
		fresh := g.livesAt(servers)
		if fresh == "" {
			p := &Problem{Kind: SameAddress, Severity: Error, Servers: servers,
				What:     fmt.Sprintf("%s are both counted, with one address: a server joined again under a new id, and the old one was not removed", g.names(servers)),
				Evidence: g.spokenBy(g.speakers()), Follows: "the id that no server has counts for the majority, as a server that does not run"}
			p.Repair = g.plan().look("the cluster/status of the server at this address tells which id it has: remove the other one with cluster/kick").steps
			problems = append(problems, p)
			continue
		}
		for _, server := range servers {
			if server == fresh {
				continue
			}
			problems = append(problems, g.deadServer(server, SameAddress, Error, fmt.Sprintf("%s is still counted, and its address is that of %s now", g.name(server), g.name(fresh)),
				fmt.Sprintf("%s runs at %s, and both ids are in the configuration", short(fresh), address)))
			if len(g.stops()) > 0 {
				problems[len(problems)-1].Repair = g.plan().look("once the cluster has a leader, remove the old id with cluster/kick").steps
			}
		}
	}
	return problems
}

// sharesAddress reports whether another server of a cluster without files has the address of a server: sameAddress tells.
func (g *group) sharesAddress(server string) bool {
	return g.newest == nil && len(g.atAddress(g.config[server], server)) > 0
}

// livesAt returns which of several servers with one address runs: the one that printed a status in the latest term, or else the only
// one that the leader hears. It is "" if that does not decide.
func (g *group) livesAt(servers []string) string {
	var printed, heard []string
	for _, server := range servers {
		if g.statuses[server] != nil {
			printed = append(printed, server)
		}
		if !slices.ContainsFunc(g.silent(), func(peer silentPeer) bool { return peer.server == server }) {
			heard = append(heard, server)
		}
	}
	switch leader := g.leader(); {
	case len(printed) == 1:
		return printed[0]
	case len(printed) == 0 && len(heard) == 1 && leader.server != "" && leader.by.Server == leader.server:
		return heard[0]
	}
	return ""
}
