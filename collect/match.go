package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// candidate is an OVN database of a whole deployment, with what decides which nodes
// get it.
type candidate struct {
	recording.Database
	owner
	holder *recording.Node // in whose report it is; nil for a file outside reports
	taken  recording.Moment
	server string // of the cluster, whose member's file it is
}

func (c *candidate) String() string { return originOf(c.Database).String() }

// matcher assigns the OVN databases of deployments to their nodes.
type matcher struct {
	*filesReader
	alone      bool // there is one node: the user gave the databases for it
	candidates map[workdir.Kind][]candidate
	given      map[string]bool // the spooled files that nodes got
}

// evidence compares a node with a row of the table Chassis: 1 where both agree, -1
// where they differ, 0 where one of them does not have the value.
type evidence struct{ name, ip, host int }

func (o owner) compare(host string, c chassis) evidence {
	e := evidence{name: agree(o.system, c.name)}
	if len(o.encaps) > 0 && len(c.encaps) > 0 {
		e.ip = -1
		if slices.ContainsFunc(o.encaps, func(ip string) bool { return slices.Contains(c.encaps, ip) }) {
			e.ip = 1
		}
	}
	if c.host != "" && (host != "" || o.hostname != "") {
		e.host = -1
		if sameHost(c.host, host) || sameHost(c.host, o.hostname) {
			e.host = 1
		}
	}
	return e
}

func agree(a, b string) int {
	switch {
	case a == "" || b == "":
		return 0
	case a == b:
		return 1
	}
	return -1
}

// proves reports whether a row with this evidence is the node's. The system-id names
// the chassis, but several deployments may use the same system-ids: the encap IP must
// not differ. A chassis that was registered under another name than the system-id is
// known by its host name and its encap IP.
func (e evidence) proves() bool {
	switch {
	case e.name > 0:
		return e.ip >= 0
	case e.name < 0:
		return e.ip > 0 && e.host > 0
	}
	return e.ip >= 0 && e.host > 0
}

// rank returns a higher number for stronger evidence, always above 0.
func (e evidence) rank() int { return 8 + 4*e.name + 2*e.ip + e.host }

// assign gives a node the databases of its deployment that it does not have.
func (m *matcher) assign(n *recording.Node) {
	if len(n.Bridges) == 0 && !m.hasKind(n, workdir.OVS) {
		return
	}
	self := m.ofNode(n)
	unknown := !self.readable || m.alone && self.system == ""
	if !unknown && !self.remote {
		if len(m.candidates) > 0 && !m.hasKind(n, workdir.SB) && !m.hasKind(n, workdir.NB) {
			n.NoOVN = "external_ids of its OVS database has no ovn-remote"
		}
		return
	}
	var reasons []string
	sb, reason := m.southbound(n, self)
	if reason != "" {
		reasons = append(reasons, "OVN SB: "+reason)
	}
	if reason := m.northbound(n, sb); reason != "" {
		reasons = append(reasons, "OVN NB: "+reason)
	}
	if len(reasons) > 0 && self.remote {
		n.LacksOVN = true
		n.NoOVN = strings.Join(reasons, "; ")
		n.Remarks = append(n.Remarks, "the node uses OVN (ovn-remote), and databases of its deployment are missing: "+n.NoOVN)
	}
}

// southbound gives a node the southbound database that has its chassis, and returns
// the one that the node has then, or the reason why it has none.
func (m *matcher) southbound(n *recording.Node, self owner) (*candidate, string) {
	own := m.own(n, workdir.SB)
	if own == nil && m.hasKind(n, workdir.SB) {
		return nil, "" // the node's own zone of OVN interconnect
	}
	fitting, differing := m.fitting(n, self)
	if own != nil && (len(fitting) == 0 || slices.ContainsFunc(fitting, func(c candidate) bool { return c.holder == n })) {
		return own, ""
	}
	if len(fitting) == 0 {
		return nil, m.noSouthbound(self, differing)
	}
	chosen, tied := choose(n.Taken, fitting)
	if chosen == nil {
		return nil, equallyGood(tied)
	}
	m.replace(n, workdir.SB, chosen)
	return chosen, ""
}

// replace gives a node a database in place of those of the kind in its own report: a
// node can have files that no server uses.
func (m *matcher) replace(n *recording.Node, kind workdir.Kind, chosen *candidate) {
	for i := range n.Databases {
		if n.Databases[i].Kind(m.ctx) == kind {
			n.Databases[i].Unfit = "the node is a chassis of the deployment of " + chosen.String()
		}
	}
	m.give(n, chosen)
}

// fitting returns the southbound databases with the strongest evidence, and
// sentences about chassis that differ from the node.
func (m *matcher) fitting(n *recording.Node, self owner) (best []candidate, differing []string) {
	most := 0
	for _, c := range m.candidates[workdir.SB] {
		rank := 0
		for _, row := range c.chassis {
			e := self.compare(n.Host, row)
			if e.proves() && e.rank() > rank {
				rank = e.rank()
			} else if e.name > 0 && e.ip < 0 {
				differing = append(differing, fmt.Sprintf("%s has the chassis %s with the encap IP %s, not %s", &c, row.name, strings.Join(row.encaps, ", "), strings.Join(self.encaps, ", ")))
			}
		}
		unknown := len(c.chassis) == 0 || self.system == ""
		if rank == 0 && !(m.alone && unknown) {
			continue
		}
		if rank > most {
			best, most = nil, rank
		}
		if rank == most {
			best = append(best, c)
		}
	}
	return best, differing
}

// noSouthbound says why no southbound database is the node's.
func (m *matcher) noSouthbound(self owner, differing []string) string {
	all := m.candidates[workdir.SB]
	switch {
	case len(all) == 0:
		return "the inputs have none"
	case len(differing) > 0:
		return strings.Join(differing, "; ")
	}
	return fmt.Sprintf("no chassis %s in that of %s", cmp.Or(self.system, self.host), origins(all))
}

func origins(list []candidate) string {
	var names []string
	for i := range list {
		names = append(names, list[i].String())
	}
	slices.Sort(names)
	return recording.FirstNames(slices.Compact(names))
}

func equallyGood(tied []candidate) string {
	return fmt.Sprintf("those of %s fit equally well and have the same time, or no known one: collect the node with only one of them", origins(tied))
}

// northbound gives a node the northbound database of the same deployment as its
// southbound one, and returns the reason where it has none.
func (m *matcher) northbound(n *recording.Node, sb *candidate) string {
	own := m.own(n, workdir.NB)
	if m.hasKind(n, workdir.NB) && (own == nil || sb == nil || sb.holder == n || pair(own, sb) > 0) {
		return ""
	}
	all := m.candidates[workdir.NB]
	if len(all) == 0 {
		return "the inputs have none"
	}
	if sb == nil && (!m.alone || len(m.candidates[workdir.SB]) > 0) {
		return "without the OVN SB database it is not known which is the node's"
	}
	var fitting []candidate
	most := 0
	copies := m.copies(sb)
	for _, c := range all {
		rank := 0
		if sb == nil { // the user gave the database for the only node
			rank = 1
		}
		for i := range copies {
			rank = max(rank, pair(&c, &copies[i]))
		}
		if rank > most {
			fitting, most = nil, rank
		}
		if rank == most && rank > 0 {
			fitting = append(fitting, c)
		}
	}
	if len(fitting) == 0 {
		return fmt.Sprintf("that of %s is not of the same deployment as the OVN SB database of %s", origins(all), sb)
	}
	taken := n.Taken
	if len(copies) == 1 {
		taken = sb.taken
	}
	chosen, tied := choose(taken, fitting)
	if chosen == nil {
		return equallyGood(tied)
	}
	m.replace(n, workdir.NB, chosen)
	return ""
}

// copies returns the southbound databases with the same content as sb: it may have
// stayed the same between two reports.
func (m *matcher) copies(sb *candidate) []candidate {
	var list []candidate
	for _, c := range m.candidates[workdir.SB] {
		if sb != nil && c.SHA256 == sb.SHA256 {
			list = append(list, c)
		}
	}
	return list
}

// pair returns a higher number for stronger evidence that a northbound and a
// southbound database are of one deployment, 0 where they are not. ovn-northd writes
// the UUIDs of logical switches and routers into the southbound database.
func pair(nb, sb *candidate) int {
	together := nb.holder == sb.holder && nb.Source.Name == sb.Source.Name
	shared := false
	for uuid := range nb.datapaths {
		shared = shared || sb.datapaths[uuid]
	}
	same := agree(nb.identity, sb.identity)
	rank := 0
	switch {
	case shared:
		rank = 3
	case len(nb.datapaths) > 0 && len(sb.datapaths) > 0, same < 0:
		return 0
	case same > 0:
		rank = 2
	}
	if together {
		rank++
	}
	return rank
}

// choose returns the candidate that was recorded nearest in time, or nil and those
// among which time does not decide. Files with the same content are one candidate,
// and so are those of the members of a cluster, of which the most recent is taken.
func choose(taken recording.Moment, list []candidate) (*candidate, []candidate) {
	list = nearest(taken, list)
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(b.Size, a.Size), cmp.Compare(a.String(), b.String()))
	})
	if len(list) == 1 || areCopies(list) || areMembers(list) {
		return &list[0], nil
	}
	return nil, list
}

// nearest returns the candidates that are nearest to a moment; all where a time is
// not known.
func nearest(taken recording.Moment, list []candidate) []candidate {
	if !taken.Known() || slices.ContainsFunc(list, func(c candidate) bool { return !c.taken.Known() }) {
		return list
	}
	byDay := taken.DayOnly || slices.ContainsFunc(list, func(c candidate) bool { return c.taken.DayOnly })
	least := slices.MinFunc(list, func(a, b candidate) int {
		return cmp.Compare(taken.Distance(a.taken, byDay), taken.Distance(b.taken, byDay))
	}).taken
	return slices.DeleteFunc(slices.Clone(list), func(c candidate) bool {
		return taken.Distance(c.taken, byDay) > taken.Distance(least, byDay)
	})
}

func areCopies(list []candidate) bool {
	return !slices.ContainsFunc(list, func(c candidate) bool { return c.SHA256 != list[0].SHA256 })
}

// areMembers reports whether the files are of different members of one cluster.
func areMembers(list []candidate) bool {
	servers := map[string]bool{}
	for _, c := range list {
		if c.server == "" || servers[c.server] || c.global != list[0].global {
			return false
		}
		servers[c.server] = true
	}
	return true
}

// own returns the candidate that is in a node's own report, nil for none.
func (m *matcher) own(n *recording.Node, kind workdir.Kind) *candidate {
	list := m.candidates[kind]
	if i := slices.IndexFunc(list, func(c candidate) bool { return c.holder == n }); i >= 0 {
		return &list[i]
	}
	return nil
}

// give adds a database to a node. What was recorded at another time may not fit.
func (m *matcher) give(n *recording.Node, c *candidate) {
	const apart = time.Hour
	db := c.Database
	byDay := n.Taken.DayOnly || c.taken.DayOnly
	if n.Taken.Known() && c.taken.Known() && n.Taken.Distance(c.taken, byDay) > apart {
		db.Remarks = append(slices.Clone(db.Remarks), fmt.Sprintf("recorded %s; the node was recorded %s", describeMoment(c.taken), describeMoment(n.Taken)))
	}
	n.Databases = append(n.Databases, db)
	m.given[db.Spooled] = true
}

func describeMoment(m recording.Moment) string {
	if m.DayOnly {
		return m.At.Format(time.DateOnly)
	}
	return m.At.Format(time.DateTime)
}
