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

// candidate is an OVN database of a whole deployment, with the facts that decide which
// nodes get it.
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

const noneGiven = "the inputs have none; add the report of a controller, or its database files"

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
	own := len(n.Databases)
	sb, why := m.southbound(n, self)
	missing := map[workdir.Kind]string{workdir.SB: why, workdir.NB: m.northbound(n, sb)}
	slices.SortStableFunc(n.Databases[own:], func(a, b recording.Database) int { // NB before SB
		return cmp.Compare(a.Kind(m.ctx), b.Kind(m.ctx))
	})
	if reason := joinReasons(missing); reason != "" && self.remote {
		n.NoOVN, n.LacksOVN = reason, true
	}
}

// joinReasons joins the reasons why databases are missing, by their kind.
func joinReasons(missing map[workdir.Kind]string) string {
	nb, sb := missing[workdir.NB], missing[workdir.SB]
	if nb == sb && nb != "" {
		return "OVN NB and SB: " + nb
	}
	var list []string
	for _, kind := range []workdir.Kind{workdir.SB, workdir.NB} {
		if missing[kind] != "" {
			list = append(list, kind.Title()+": "+missing[kind])
		}
	}
	return strings.Join(list, "; ")
}

// southbound gives a node the southbound database that has its chassis. It returns the
// southbound database of the node, or the reason why the node has none.
func (m *matcher) southbound(n *recording.Node, self owner) (*candidate, string) {
	own := m.own(n, workdir.SB)
	if own == nil && m.hasKind(n, workdir.SB) {
		return nil, "" // the node's own zone of OVN interconnect
	}
	fitting := m.fitting(n, self)
	if own != nil && (len(fitting) == 0 || self.rank(n.Host, own) > 0) {
		return own, ""
	}
	if len(fitting) == 0 {
		return nil, m.noSouthbound(self)
	}
	chosen, tied := choose(n.Taken, m.withPorts(n, fitting))
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

// fitting returns the southbound databases with the strongest evidence. The databases
// that a user gives with a single node may have no evidence.
func (m *matcher) fitting(n *recording.Node, self owner) (best []candidate) {
	most := 0
	for _, c := range m.candidates[workdir.SB] {
		rank := self.rank(n.Host, &c)
		if unknown := len(c.chassis) == 0 || self.system == ""; rank == 0 && !(m.alone && unknown) {
			continue
		}
		if rank > most {
			best, most = nil, rank
		}
		if rank == most {
			best = append(best, c)
		}
	}
	return best
}

// withPorts returns the southbound databases that have logical ports of the node's
// interfaces, or all if no or every database has some. Deployments may use the same
// names and addresses for their chassis.
func (m *matcher) withPorts(n *recording.Node, list []candidate) []candidate {
	if !slices.ContainsFunc(list, func(c candidate) bool { return c.global != list[0].global }) {
		return list
	}
	ports := map[string]bool{}
	for i := range n.Databases {
		if db := &n.Databases[i]; db.Kind(m.ctx) == workdir.OVS {
			ports = readPorts(m.ctx, db.Spooled, workdir.OVS)
		}
	}
	var with []candidate
	for _, c := range list {
		if overlap(ports, readPorts(m.ctx, c.Spooled, workdir.SB)) {
			with = append(with, c)
		}
	}
	if len(with) == 0 {
		return list
	}
	return with
}

// noSouthbound returns the reason why no southbound database is the node's.
func (m *matcher) noSouthbound(self owner) string {
	all := m.candidates[workdir.SB]
	if len(all) == 0 {
		return noneGiven
	}
	for i := range all {
		for _, row := range all[i].chassis {
			if e := self.compare("", row); e.name > 0 && e.ip < 0 {
				return fmt.Sprintf("%s has the chassis %s with the encap IP %s, not %s", &all[i], row.name, strings.Join(row.encaps, ", "), strings.Join(self.encaps, ", "))
			}
		}
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
	return fmt.Sprintf("those of %s fit equally well, and time does not decide between them: collect the node with only one of them", origins(tied))
}

// northbound gives a node the northbound database of the same deployment as its
// southbound one. It returns the reason if the node has none then.
func (m *matcher) northbound(n *recording.Node, sb *candidate) string {
	own := m.own(n, workdir.NB)
	if m.hasKind(n, workdir.NB) && (own == nil || sb == nil || sb.holder == n || pair(own, sb) > 0) {
		return ""
	}
	all := m.candidates[workdir.NB]
	if len(all) == 0 {
		return noneGiven
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
