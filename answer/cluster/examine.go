package cluster

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/pkg/ovsdb/raft"
)

// Examine reads the files of members, of one or of several clusters, and returns what they say. The
// error is that of the context, or of a file that cannot be read at all because of this machine.
func Examine(ctx context.Context, files []Member) (*Report, error) {
	report := &Report{Clusters: []*Cluster{}}
	var members []*member
	statuses := map[string]*printed{} // by the UUID of the server
	for _, given := range files {
		if !addStatus(statuses, given) {
			report.leaveOut(given.Name)
		}
		if given.Path == "" {
			continue
		}
		read, err := raft.Read(ctx, given.open, given.Path)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, file.ErrNotClustered) {
			report.Standalone = append(report.Standalone, given.Name)
			continue
		}
		if err != nil {
			report.Unjudged = append(report.Unjudged, Unjudged{cmp.Or(given.Name, given.Path), err.Error()})
			continue
		}
		members = append(members, &member{given: given, log: read, state: Sound})
	}
	groups := grouped(members)
	for _, g := range groups {
		g.addStatuses(statuses)
	}
	groups = withStatuses(groups, statuses)
	var all []*Cluster
	for _, g := range groups {
		cluster, err := g.examine(ctx, groups)
		if err != nil {
			return nil, err
		}
		all = append(all, cluster)
	}
	report.Clusters = append(report.Clusters, all...)
	return report, nil
}

// leaveOut says once that there are more servers than are examined.
func (r *Report) leaveOut(name string) {
	const reason = "there are statuses of too many servers: this one and later ones are left out"
	if !slices.ContainsFunc(r.Unjudged, func(one Unjudged) bool { return one.Reason == reason }) {
		r.Unjudged = append(r.Unjudged, Unjudged{name, reason})
	}
}

// member is a file that was read, and what its server printed.
type member struct {
	given  Member
	log    *raft.Member
	status *printed // nil if it is not known
	state  State
}

func (m *member) server() string { return m.log.Server }

// group is the members of one cluster.
type group struct {
	database string
	id       string    // "" if only servers are known that have not joined
	members  []*member // all files, the newest first
	older    []*member // other files of servers that are among members
	statuses map[string]*printed

	newest    *member           // the member with the most of the log; nil if none has joined
	committed map[string]string // the servers as of the last committed configuration
	config    map[string]string // the servers as of the last one
	upTo      int64             // the greatest index that any member knows to be committed
}

// grouped returns the groups of members, by the UUID of their cluster. A server that has not joined
// goes to the cluster that its remote addresses are of, or else to the only one of its database.
func grouped(members []*member) []*group {
	var groups []*group
	find := func(database, id string) *group {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.database == database && g.id == id })
		if i < 0 {
			groups = append(groups, &group{database: database, id: id, statuses: map[string]*printed{}})
			i = len(groups) - 1
		}
		return groups[i]
	}
	for _, m := range members {
		if !m.log.Joining() {
			g := find(m.log.Name, m.log.Cluster)
			g.members = append(g.members, m)
		}
	}
	for _, g := range groups {
		g.prepare()
	}
	joined := slices.Clone(groups)
	for _, m := range members {
		if !m.log.Joining() {
			continue
		}
		m.state = Joining
		g := clusterToJoin(m, joined)
		if g == nil {
			g = find(m.log.Name, m.log.Cluster)
		}
		g.members = append(g.members, m)
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.database, b.database), cmp.Compare(len(b.config), len(a.config)), cmp.Compare(a.id, b.id))
	})
	return groups
}

// clusterToJoin returns the cluster that a server wants to join: that with the UUID of its file, or
// else that with one of its remote addresses, or else the only one of its database. It is nil if that
// does not decide.
func clusterToJoin(m *member, groups []*group) *group {
	choose := func(fits func(g *group) bool) *group {
		i := slices.IndexFunc(groups, fits)
		if i < 0 {
			return nil
		}
		return groups[i]
	}
	byID := choose(func(g *group) bool { return g.id == m.log.Cluster })
	byAddress := choose(func(g *group) bool {
		return slices.ContainsFunc(m.log.Remotes, func(address string) bool { return g.knows(address) })
	})
	if found := cmp.Or(byID, byAddress); found != nil {
		return found
	}
	same := slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return g.database != m.log.Name })
	if len(same) == 1 {
		return same[0]
	}
	return nil
}

// knows reports whether an address is or was that of a server of the cluster.
func (g *group) knows(address string) bool {
	for _, m := range g.members {
		if m.log.Address == address {
			return true
		}
	}
	return slices.Contains(slices.Collect(maps.Values(g.config)), address) || slices.Contains(slices.Collect(maps.Values(g.committed)), address)
}

// prepare finds out which servers the cluster has, and how each is.
func (g *group) prepare() {
	slices.SortStableFunc(g.members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(b.log.LastTerm(), a.log.LastTerm()), cmp.Compare(b.log.Last(), a.log.Last()), cmp.Compare(b.log.CurrentTerm, a.log.CurrentTerm))
	})
	seen := map[string]bool{}
	g.members = slices.DeleteFunc(g.members, func(m *member) bool {
		old := seen[m.server()]
		seen[m.server()] = true
		if old {
			m.state = Older
			g.older = append(g.older, m)
		}
		return old
	})
	// The file of a server that is no member any more may have entries that the others took back.
	for _, sound := range []bool{true, false} {
		for _, m := range g.members {
			if g.newest == nil && (!sound || m.loads()) {
				g.newest = m
			}
		}
	}
	for _, m := range g.members {
		if m.log.Committed >= g.upTo {
			g.upTo = m.log.Committed
		}
	}
	g.config, _ = g.newest.log.ServersAt(g.newest.log.Last())
	var since int64 = -1
	for _, m := range g.members { // the newest first
		if servers, index := m.log.ServersAt(g.upTo); index > since {
			g.committed, since = servers, index
		}
	}
	for _, m := range g.members {
		m.state = g.stateOf(m)
	}
}

// loads reports whether ovsdb-server starts on the file, so that the server counts again.
func (m *member) loads() bool {
	return m.log.Refused == "" && !m.log.Left && !m.log.Joining() && m.log.Belongs() && m.log.Ignored == 0
}

func (g *group) stateOf(m *member) State {
	switch {
	case m.log.Left:
		return Left
	case m.log.Refused != "", m.log.Ignored > 0:
		return Refused
	case !m.log.Belongs(), m != g.newest && g.config[m.server()] == "" && g.committed[m.server()] == "":
		return Removed
	case m.log.Damage != "":
		return Cut
	}
	return Sound
}

// addStatuses takes what the servers of the group printed.
func (g *group) addStatuses(all map[string]*printed) {
	for server, status := range all {
		_, known := g.config[server]
		if m := g.member(server); m != nil {
			m.status, known = status, true
		}
		if known || status.Cluster != "" && status.Cluster == g.id {
			g.statuses[server] = status
			status.placed = true
		}
	}
}

// member returns the file of a server, nil if none was given.
func (g *group) member(server string) *member {
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.server() == server })
	if i < 0 {
		return nil
	}
	return g.members[i]
}

// voters returns the members that count for a majority once their servers run.
func (g *group) voters() (list []*member) {
	for _, m := range g.members {
		if _, counts := g.config[m.server()]; counts && m.loads() {
			list = append(list, m)
		}
	}
	return list
}

// absent returns the servers of the configuration without a file, sorted.
func (g *group) absent() (list []string) {
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if g.member(server) == nil {
			list = append(list, server)
		}
	}
	return list
}

func (g *group) majority() int { return len(g.config)/2 + 1 }

// examine returns what the files of the group say.
func (g *group) examine(ctx context.Context, groups []*group) (*Cluster, error) {
	c := &Cluster{Database: g.database, ID: g.id, Servers: g.servers(), Committed: g.committed, Terms: []Term{}, Problems: []*Problem{}}
	if g.newest == nil {
		g.examineStatuses(c, groups)
		return c, nil
	}
	if !maps.Equal(g.config, g.committed) {
		c.Pending = g.config
	}
	c.ElectionTimer = g.newest.log.TimerAt(g.newest.log.Last())
	c.Terms = g.terms()
	contradictions, err := g.contradictions(ctx)
	if err != nil {
		return nil, err
	}
	for _, problems := range [][]*Problem{
		g.twoClusters(groups), g.quorum(), contradictions, g.refused(), g.sameServer(ctx), g.joining(groups), g.joiningPrinted(), g.dead(), g.gone(), g.failed(),
		g.apart(), g.cutOff(), g.behind(), g.pending(), g.uncommitted(), g.differing(), g.bouncing(c.Terms), g.noFile(),
	} {
		c.Problems = append(c.Problems, problems...)
	}
	slices.SortStableFunc(c.Problems, func(a, b *Problem) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	return c, nil
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Note}, s) }
