package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// candidate is an OVN database of a whole deployment, with the facts that decide which
// nodes get it.
type candidate struct {
	recording.Database
	owner
	holder *recording.Recording // in whose report it is; nil for a file outside reports
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
func (m *matcher) assign(node *recording.Recording) {
	if len(node.Bridges) == 0 && !m.hasKind(node, workdir.OVS) {
		return
	}
	self := m.ownerOfNode(node)
	unknown := !self.readable || m.alone && self.system == ""
	if !unknown && !self.remote {
		if len(m.candidates) > 0 && !m.hasKind(node, workdir.SB) && !m.hasKind(node, workdir.NB) {
			node.NoOVN = "external_ids of its OVS database has no ovn-remote"
		}
		return
	}
	own := len(node.Databases)
	sb, why := m.southbound(node, self)
	missing := map[workdir.Kind]string{workdir.SB: why, workdir.NB: m.northbound(node, sb)}
	slices.SortStableFunc(node.Databases[own:], func(a, b recording.Database) int { // NB before SB
		return cmp.Compare(a.Kind(m.ctx), b.Kind(m.ctx))
	})
	if reason := joinReasons(missing); reason != "" && self.remote {
		node.NoOVN, node.LacksOVN = reason, true
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
func (m *matcher) southbound(node *recording.Recording, self owner) (*candidate, string) {
	own := m.ownCandidate(node, workdir.SB)
	if own == nil && m.hasKind(node, workdir.SB) {
		return nil, "" // the node's own zone of OVN interconnect
	}
	fitting := m.fitting(node, self)
	if own != nil && (len(fitting) == 0 || self.rank(node.Host, own) > 0) {
		return own, ""
	}
	if len(fitting) == 0 {
		return nil, m.noSouthbound(self)
	}
	chosen, tied := choose(node.Taken, m.withPorts(node, fitting))
	if chosen == nil {
		return nil, equallyGood(tied)
	}
	m.replace(node, workdir.SB, chosen)
	return chosen, ""
}

// replace gives a node a database in place of the ones of the same kind in its own report: a
// node can have files that no server uses.
func (m *matcher) replace(node *recording.Recording, kind workdir.Kind, chosen *candidate) {
	for i := range node.Databases {
		if node.Databases[i].Kind(m.ctx) == kind {
			node.Databases[i].Unfit = "the node is a chassis of the deployment of " + chosen.String()
		}
	}
	m.addToNode(node, chosen)
}

// fitting returns the southbound databases with the strongest evidence. The databases
// that a user gives with a single node may have no evidence.
func (m *matcher) fitting(node *recording.Recording, self owner) (best []candidate) {
	most := 0
	for _, candidate := range m.candidates[workdir.SB] {
		rank := self.rank(node.Host, &candidate)
		if unknown := len(candidate.chassis) == 0 || self.system == ""; rank == 0 && !(m.alone && unknown) {
			continue
		}
		if rank > most {
			best, most = nil, rank
		}
		if rank == most {
			best = append(best, candidate)
		}
	}
	return best
}

// withPorts returns the southbound databases that have logical ports of the node's
// interfaces, or all if no or every database has some. Deployments may use the same
// names and addresses for their chassis.
func (m *matcher) withPorts(node *recording.Recording, list []candidate) []candidate {
	if !slices.ContainsFunc(list, func(candidate candidate) bool { return candidate.global != list[0].global }) {
		return list
	}
	ports := map[string]bool{}
	for i := range node.Databases {
		if db := &node.Databases[i]; db.Kind(m.ctx) == workdir.OVS {
			ports = readPorts(m.ctx, db, workdir.OVS)
		}
	}
	var with []candidate
	for _, candidate := range list {
		if overlap(ports, readPorts(m.ctx, &candidate.Database, workdir.SB)) {
			with = append(with, candidate)
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
			if evidence := self.compare("", row); evidence.name > 0 && evidence.ip < 0 {
				return fmt.Sprintf("%s has the chassis %s with the encap IP %s, not %s", &all[i], row.name, strings.Join(row.encaps, ", "), strings.Join(self.encaps, ", "))
			}
		}
	}
	return fmt.Sprintf("the database of %s has no chassis %s", origins(all), cmp.Or(self.system, self.host))
}

func origins(list []candidate) string {
	var names []string
	for i := range list {
		names = append(names, list[i].String())
	}
	slices.Sort(names)
	return phrase.FirstNames(slices.Compact(names))
}

func equallyGood(tied []candidate) string {
	return fmt.Sprintf("the databases of %s fit equally well, and their times do not decide: collect the node with only one of them", origins(tied))
}

// northbound gives a node the northbound database of the same deployment as its
// southbound one. It returns the reason if the node has none then.
func (m *matcher) northbound(node *recording.Recording, sb *candidate) string {
	own := m.ownCandidate(node, workdir.NB)
	if m.hasKind(node, workdir.NB) && (own == nil || sb == nil || sb.holder == node || pair(own, sb) > 0) {
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
	for _, candidate := range all {
		rank := 0
		if sb == nil { // the user gave the database for the only node
			rank = 1
		}
		for i := range copies {
			rank = max(rank, pair(&candidate, &copies[i]))
		}
		if rank > most {
			fitting, most = nil, rank
		}
		if rank == most && rank > 0 {
			fitting = append(fitting, candidate)
		}
	}
	if len(fitting) == 0 {
		return fmt.Sprintf("the database of %s belongs to another deployment than the OVN SB database of %s", origins(all), sb)
	}
	taken := node.Taken
	if len(copies) == 1 {
		taken = sb.taken
	}
	chosen, tied := choose(taken, fitting)
	if chosen == nil {
		return equallyGood(tied)
	}
	m.replace(node, workdir.NB, chosen)
	return ""
}

// copies returns the southbound databases with the same content as sb: it may have
// stayed the same between two reports.
func (m *matcher) copies(sb *candidate) []candidate {
	var list []candidate
	for _, candidate := range m.candidates[workdir.SB] {
		if sb != nil && candidate.SHA256 == sb.SHA256 {
			list = append(list, candidate)
		}
	}
	return list
}

// ownCandidate returns the candidate that is in a node's own report, nil for none.
func (m *matcher) ownCandidate(node *recording.Recording, kind workdir.Kind) *candidate {
	list := m.candidates[kind]
	if i := slices.IndexFunc(list, func(candidate candidate) bool { return candidate.holder == node }); i >= 0 {
		return &list[i]
	}
	return nil
}

// addToNode adds a database to a node. What was recorded at another time may not fit.
func (m *matcher) addToNode(node *recording.Recording, c *candidate) {
	const apart = time.Hour
	db := c.Database
	byDay := node.Taken.DayOnly || c.taken.DayOnly
	if node.Taken.Known() && c.taken.Known() && node.Taken.Distance(c.taken, byDay) > apart {
		db.Remarks = append(slices.Clone(db.Remarks), fmt.Sprintf("recorded %s; the node was recorded %s", describeMoment(c.taken), describeMoment(node.Taken)))
	}
	node.Databases = append(node.Databases, db)
	m.given[db.Spooled] = true
}

func describeMoment(moment recording.Moment) string {
	if moment.DayOnly {
		return moment.At.Format(time.DateOnly)
	}
	return moment.At.Format(time.DateTime)
}
