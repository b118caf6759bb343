package cluster

import (
	"cmp"
	"maps"
	"slices"

	"ovs-offline/pkg/ovsdb/raft"
)

// printed is what a server printed of itself.
type printed struct {
	raft.Status
	name    string     // of the text
	earlier []*printed // what the server printed in earlier terms, or before in the same one
	placed  bool       // a cluster has it
}

// The states that a server prints of itself, beside "cluster member" and "disconnected from the cluster (election timeout)".
const (
	isJoining = "joining cluster"
	isLeaving = "leaving cluster"
	hasLeft   = "left cluster"
	hasFailed = "failed"
)

// state returns the state that the server printed of itself.
func (p *printed) state() string { return p.Status.Status }

// takesPart reports whether the server takes part in elections.
func (p *printed) takesPart() bool {
	return !slices.Contains([]string{isJoining, hasLeft, hasFailed}, p.state())
}

// hasTimes reports whether the text says when messages of other servers came, as newer releases do.
func (p *printed) hasTimes() bool {
	return slices.ContainsFunc(p.Peers, func(peer raft.Peer) bool { return peer.Silent >= 0 })
}

// limit is the time after which a server is silent, in milliseconds: two election timers.
func (p *printed) limit() int64 { return 2 * max(p.ElectionTimer, raft.UsualElectionTimer) }

// maxServers bounds the servers whose statuses are examined together.
const maxServers = 100

// addStatus adds what a server printed; ok is false if there are too many servers. A later output of
// a server replaces an earlier one: one of a later term, or the last in a term.
func addStatus(all map[string]*printed, given Member) (ok bool) {
	status, isStatus := raft.ParseStatus(given.Status)
	if !isStatus {
		return true
	}
	added, before := &printed{Status: status, name: given.Name}, all[status.Server]
	switch {
	case before == nil && len(all) >= maxServers:
		return false
	case before == nil:
	case before.Term > added.Term:
		before.earlier = append(before.earlier, added)
		return true
	default:
		added.earlier, before.earlier = append(before.earlier, before), nil
	}
	all[status.Server] = added
	return true
}

// withStatuses adds the clusters that only outputs of cluster/status tell of. A server that has not joined goes to
// the cluster that it wants to join.
func withStatuses(groups []*group, all map[string]*printed) []*group {
	var joining []*printed
	for _, server := range slices.Sorted(maps.Keys(all)) {
		status := all[server]
		switch {
		case status.placed:
		case status.Cluster == "":
			joining = append(joining, status)
		default:
			groups = put(groups, status)
		}
	}
	for _, g := range groups {
		g.prepareStatuses()
	}
	groups = joinFiles(groups)
	for _, status := range joining {
		if g := statusToJoin(status, groups); g != nil {
			g.statuses[status.Server] = status
		} else {
			groups = put(groups, status)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.database, b.database) })
	return groups
}

// put adds a status to the cluster that it names.
func put(groups []*group, status *printed) []*group {
	i := slices.IndexFunc(groups, func(g *group) bool { return g.database == status.Database && g.id == status.Cluster })
	if i < 0 {
		groups = append(groups, &group{database: status.Database, id: status.Cluster, statuses: map[string]*printed{}})
		i = len(groups) - 1
	}
	groups[i].statuses[status.Server] = status
	return groups
}

// statusToJoin returns the cluster that a server wants to join: that with one of its remote addresses, or else the only one
// of its database. It is nil if that does not decide.
func statusToJoin(status *printed, groups []*group) *group {
	var same []*group
	for _, g := range groups {
		if g.database != status.Database || g.newest == nil && len(g.config) == 0 {
			continue
		}
		if slices.ContainsFunc(status.Remotes, g.knows) {
			return g
		}
		same = append(same, g)
	}
	if len(same) == 1 {
		return same[0]
	}
	return nil
}

// joinFiles moves the files of servers that have not joined to the cluster that they want to join, if only outputs of
// cluster/status tell of it.
func joinFiles(groups []*group) []*group {
	var printed []*group
	for _, g := range groups {
		if g.newest == nil && len(g.config) > 0 {
			printed = append(printed, g)
		}
	}
	return slices.DeleteFunc(groups, func(g *group) bool {
		if g.newest != nil || len(g.config) > 0 || len(g.members) == 0 || len(printed) == 0 {
			return false
		}
		to := clusterToJoin(g.members[0], printed)
		if to == nil || len(g.members) > 1 {
			return false
		}
		to.members = append(to.members, g.members...)
		return true
	})
}

// prepareStatuses finds out which servers a cluster without files has: those that its leader lists, or else the server that
// is in the latest term.
func (g *group) prepareStatuses() {
	if g.newest != nil || len(g.statuses) == 0 {
		return
	}
	g.config = map[string]string{}
	lister := g.lister()
	if lister == nil {
		return
	}
	for _, peer := range lister.Peers {
		server := g.serverOf(peer)
		if _, taken := g.config[server]; taken { // two UUIDs begin alike
			server += "@" + peer.Address
		}
		g.config[server] = peer.Address
	}
}

// lister returns the status whose list of servers counts, nil if none has one.
func (g *group) lister() (best *printed) {
	leads := func(p *printed) bool { return p.Apart() == "" && p.Leader == "self" }
	for _, server := range slices.Sorted(maps.Keys(g.statuses)) {
		p := g.statuses[server]
		if len(p.Peers) == 0 || !p.takesPart() {
			continue
		}
		if best == nil || leads(p) && !leads(best) || leads(p) == leads(best) && (p.Term > best.Term || p.Term == best.Term && p.Last > best.Last) {
			best = p
		}
	}
	return best
}

// serverOf returns the UUID of a server that another one lists, or as much of it as is known.
func (g *group) serverOf(peer raft.Peer) string {
	for server, status := range g.statuses {
		if short(server) == peer.Short && status.Address == peer.Address {
			return server
		}
	}
	for _, m := range g.members {
		if short(m.server()) == peer.Short && m.log.Address == peer.Address {
			return m.server()
		}
	}
	return cmp.Or(g.byShort(peer.Short, peer.Address), peer.Short)
}

// lead is who leads a cluster, as of an output of cluster/status.
type lead struct {
	server string // "" if none is known
	term   int64
	by     *printed // which says so
}

// leader returns the leader of the latest term that a server names, unless that one itself says that it does not lead.
func (g *group) leader() (best lead) {
	for _, id := range slices.Sorted(maps.Keys(g.statuses)) {
		status := g.statuses[id]
		server := g.leaderIn(status)
		if server == "" || status.Apart() != "" {
			continue
		}
		own := g.statuses[server]
		if own != nil && own != status && own.Leader != "self" && own.Term >= status.Term {
			continue
		}
		if best.by == nil || status.Term > best.term || status.Term == best.term && own == status {
			best = lead{server, status.Term, status}
		}
	}
	return best
}

// leaderIn returns the server that a status names as the leader, "" if it names none.
func (g *group) leaderIn(status *printed) string {
	switch status.Leader {
	case "", "unknown":
		return ""
	case "self":
		return status.Server
	}
	for _, peer := range status.Peers {
		if peer.Nickname == status.Leader {
			return g.serverOf(peer)
		}
	}
	return status.Leader
}

// connected reports whether a server has a connection with another one, as its status says; known reports whether it tells.
func (g *group) connected(server, other string) (yes, known bool) {
	status := g.statuses[server]
	if status == nil || !status.Connections || server == other {
		return false, false
	}
	for _, peer := range status.Peers {
		if peer.Self || g.serverOf(peer) != other {
			continue
		}
		return peer.Connected, true
	}
	return false, false
}

// reached returns the other servers of the configuration with which a server has a connection, as its status says.
func (g *group) reached(server string) (list []string) {
	for _, other := range slices.Sorted(maps.Keys(g.config)) {
		if yes, _ := g.connected(server, other); yes {
			list = append(list, other)
		}
	}
	return list
}

// speakers returns the servers of the configuration that printed a status and take part in elections.
func (g *group) speakers() (list []string) {
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if status := g.statuses[server]; status != nil && status.takesPart() {
			list = append(list, server)
		}
	}
	return list
}

// mute returns the servers of the configuration that printed no status.
func (g *group) mute() (list []string) {
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if g.statuses[server] == nil {
			list = append(list, server)
		}
	}
	return list
}

// unreached returns the servers without a status with which none of those with one has a connection.
func (g *group) unreached() []string {
	return slices.DeleteFunc(g.mute(), func(server string) bool {
		seen := false
		for _, speaker := range g.speakers() {
			yes, known := g.connected(speaker, server)
			if yes {
				return true
			}
			seen = seen || known
		}
		return !seen
	})
}

// mayReach returns how many servers, with itself, a server can reach at most: all but those to which a status shows no
// connection, and those that cannot vote.
func (g *group) mayReach(server string) (count int) {
	for _, other := range slices.Sorted(maps.Keys(g.config)) {
		if status := g.statuses[other]; status != nil && !status.takesPart() {
			continue
		}
		there, seen := g.connected(server, other)
		back, seenBack := g.connected(other, server)
		if server == other || (there || !seen) && (back || !seenBack) {
			count++
		}
	}
	return count
}

// canElect reports whether some server may reach a majority.
func (g *group) canElect() bool {
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if status := g.statuses[server]; (status == nil || status.takesPart()) && g.mayReach(server) >= g.majority() {
			return true
		}
	}
	return false
}
