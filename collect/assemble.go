package collect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// assemble makes nodes of what was recognised: the data of one host becomes one
// node, and each node gets the databases of its cluster.
func (r *filesReader) assemble() error {
	nodes := slices.Clone(r.reports)
	slices.SortStableFunc(nodes, func(a, b *recording.Node) int { return cmp.Compare(a.Host, b.Host) })
	byName := map[string][]*recording.Node{}
	for _, n := range nodes {
		byName[shortName(n.Host)] = append(byName[shortName(n.Host)], n)
	}
	for _, n := range r.loose.hosts() {
		if same := nearestHost(byName[shortName(n.Host)], n); same != nil {
			merge(same, n)
		} else {
			nodes = append(nodes, n)
		}
	}
	if u := r.loose.unnamed; u != nil && len(nodes) == 1 {
		merge(nodes[0], u)
	} else if u != nil {
		nodes = append(nodes, u)
	}
	if err := r.Limits.CheckNodes(len(nodes)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(r.Paths, ", "), err)
	}
	for _, n := range nodes {
		n.LimitBridges()
		slices.SortStableFunc(n.All, func(a, b recording.Output) int { return cmp.Compare(b.OpenFlow, a.OpenFlow) })
		r.renameBridges(n)
	}
	nodes = r.shareCentral(nodes)
	r.found.Nodes = nameNodes(nodes)
	for _, n := range r.found.Nodes {
		if n.LacksOVN {
			n.Remarks = append(n.Remarks, fmt.Sprintf("%s uses OVN (ovn-remote), and lacks a database of its deployment: %s", n.Name, n.NoOVN))
		}
	}
	if len(nodes) == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, strings.Join(append(r.found.Lost, "nothing of Open vSwitch or OVN could be read"), "; "))
	}
	return nil
}

// nearestHost returns the report of a node that was made nearest in time to the data
// of it in another source; nil if there is none, or if time does not decide.
func nearestHost(reports []*recording.Node, n *recording.Node) *recording.Node {
	var same []*recording.Node
	for _, report := range reports {
		if sameHost(report.Host, n.Host) {
			same = append(same, report)
		}
	}
	if len(same) == 0 {
		return nil
	}
	unknown := func(n *recording.Node) bool { return !n.Taken.Known() }
	if len(same) > 1 && (unknown(n) || slices.ContainsFunc(same, unknown)) {
		return nil
	}
	byDay := n.Taken.DayOnly || slices.ContainsFunc(same, func(report *recording.Node) bool { return report.Taken.DayOnly })
	distance := func(report *recording.Node) time.Duration { return n.Taken.Distance(report.Taken, byDay) }
	slices.SortStableFunc(same, func(a, b *recording.Node) int { return cmp.Compare(distance(a), distance(b)) })
	if len(same) > 1 && distance(same[0]) == distance(same[1]) {
		return nil
	}
	return same[0]
}

// merge adds the data of another source to a node. If both have an output, only
// the node's own is kept: dumps of different times do not fit together.
func merge(n, more *recording.Node) {
	own := n.BySubject()
	left := map[string]bool{}
	for _, o := range more.All {
		if _, exists := own[recording.Subject{Command: o.Command, Bridge: o.Bridge}]; exists {
			left[o.Origin] = true
			continue
		}
		o.Origin = more.Source.Name + ": " + o.Origin
		if o.Bridge != "" {
			n.AddBridge(o.Bridge)
		}
		n.All = append(n.All, o)
	}
	for _, db := range more.Databases {
		if db.Source == nil {
			db.Source = &more.Source
		}
		db.Foreign = true
		n.Databases = append(n.Databases, db)
	}
	if len(left) > 0 {
		n.Remarks = append(n.Remarks, fmt.Sprintf("%s has %d dumps of this node that were not taken, since %s has them too", more.Source.Name, len(left), n.Source.Name))
	}
	n.Logs = append(n.Logs, more.Logs...)
	n.OVSVersion, n.OVNVersion = cmp.Or(n.OVSVersion, more.OVSVersion), cmp.Or(n.OVNVersion, more.OVNVersion)
	n.Host, n.Image = cmp.Or(n.Host, more.Host), cmp.Or(n.Image, more.Image)
	n.Remarks = append(n.Remarks, more.Remarks...)
	n.Lost = append(n.Lost, more.Lost...)
}

// renameBridges replaces the name of a bridge that its source spells inexactly (a
// must-gather's underscores, a file's name) by that in the OVS database.
func (r *filesReader) renameBridges(n *recording.Node) {
	var real []string
	for i := range n.Databases {
		if db := &n.Databases[i]; n.Source.Kind != "sos report" && db.Kind(r.ctx) == workdir.OVS {
			real = append(real, r.owner(db).bridges...)
		}
	}
	if len(real) == 0 {
		return
	}
	dashes := strings.NewReplacer("_", "-", ".", "-")
	known, inexact, rename := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, name := range real {
		known[name], inexact[dashes.Replace(name)] = true, name
	}
	var unknown []string
	for _, b := range n.Bridges {
		name := inexact[dashes.Replace(b)]
		if b == unnamedBridge && len(real) == 1 {
			name = real[0]
		}
		switch {
		case known[b]:
		case name != "":
			rename[b] = name
		default:
			unknown = append(unknown, b)
		}
	}
	if len(unknown) > 0 {
		n.Remarks = append(n.Remarks, fmt.Sprintf("conf.db does not have the bridges %s, of which there are dumps; it has %s", recording.FirstNames(unknown), recording.FirstNames(real)))
	}
	for i, b := range n.Bridges {
		n.Bridges[i] = cmp.Or(rename[b], b)
	}
	for i, o := range n.All {
		n.All[i].Bridge = cmp.Or(rename[o.Bridge], o.Bridge)
	}
	slices.Sort(n.Bridges)
	n.Bridges = slices.Compact(n.Bridges)
}

// shareCentral gives the databases of a deployment to its nodes that have no such
// database. Databases that no node gets become nodes of their own.
func (r *filesReader) shareCentral(nodes []*recording.Node) []*recording.Node {
	r.loose.central = r.withoutCopies(r.loose.central)
	m := &matcher{filesReader: r, alone: len(nodes) == 1, candidates: map[workdir.Kind][]candidate{}, given: map[string]bool{}}
	m.addCandidates(nodes)
	for _, n := range nodes {
		m.assign(n)
	}
	for _, n := range nodes {
		for i, db := range n.Databases {
			n.Databases[i].Shared = m.given[db.Spooled] // also on its own node, so that the file is copied, not moved
		}
	}
	r.remarkEqual(nodes)
	return append(nodes, m.leftover()...)
}

// addCandidates adds the databases of whole deployments: loose ones, and those in
// reports where there are several nodes.
func (m *matcher) addCandidates(nodes []*recording.Node) {
	for _, db := range m.loose.central {
		m.addCandidate(db, nil, m.taken[db.Source.Name])
	}
	if m.alone && len(m.loose.central) == 0 {
		return
	}
	for _, n := range nodes {
		for i := range n.Databases {
			db := &n.Databases[i]
			if kind := db.Kind(m.ctx); kind == "" || kind == workdir.OVS {
				continue
			}
			if db.Source == nil {
				db.Source = &n.Source
			}
			db.Holder = n.Host
			m.addCandidate(*db, n, n.Taken)
		}
	}
}

func (m *matcher) addCandidate(db recording.Database, holder *recording.Node, taken recording.Moment) {
	info, _ := db.Inspect(m.ctx) // the kind of the database is known, so it can be read
	if o := m.owner(&db); o.readable && o.host == "" {
		kind := workdir.KindOfSchema(info.Name)
		m.candidates[kind] = append(m.candidates[kind], candidate{Database: db, owner: o, holder: holder, taken: taken, server: info.Server})
	}
}

// leftover returns nodes of the loose databases that no node got, one for each
// deployment. A file of a member of a cluster is left out if a node got another's.
func (m *matcher) leftover() []*recording.Node {
	var nodes []*recording.Node
	var firsts []candidate
	for _, db := range m.loose.central {
		kind := db.Kind(m.ctx)
		c := candidate{Database: db, owner: m.owner(&db)}
		if m.given[db.Spooled] || slices.ContainsFunc(m.candidates[kind], func(other candidate) bool { return m.given[other.Spooled] && other.global == c.global }) {
			continue
		}
		i := slices.IndexFunc(firsts, func(first candidate) bool { return m.together(c, first) })
		if i < 0 {
			firsts = append(firsts, c)
			nodes = append(nodes, &recording.Node{Host: "cluster", Source: *db.Source, Taken: m.taken[db.Source.Name]})
			i = len(nodes) - 1
		}
		nodes[i].Databases = append(nodes[i].Databases, db)
	}
	return nodes
}

// together reports whether two loose databases may be of one deployment.
func (m *matcher) together(a, b candidate) bool {
	kindA, kindB := a.Kind(m.ctx), b.Kind(m.ctx)
	switch {
	case !a.readable || !b.readable:
		return true
	case kindA == kindB:
		return a.global == b.global
	case kindA == workdir.SB:
		a, b = b, a
	}
	return pair(&a, &b) > 0
}

// withoutCopies returns the databases without further copies of the same content.
func (r *filesReader) withoutCopies(list []recording.Database) []recording.Database {
	var kept []recording.Database
	copies := map[string][]string{}
	for _, db := range list {
		if copies[db.SHA256] == nil {
			kept = append(kept, db)
		}
		copies[db.SHA256] = append(copies[db.SHA256], db.Origin)
	}
	for i := range kept {
		if same := copies[kept[i].SHA256]; len(same) > 1 {
			r.found.Remarks = append(r.found.Remarks, fmt.Sprintf("%d files are the same %s database, and count as one: %s", len(same), kept[i].Kind(r.ctx).Title(), recording.FirstNames(same)))
		}
	}
	return kept
}

// remarkEqual adds a remark about nodes whose own OVN databases are equal: nodes of OVN
// interconnect have different ones.
func (r *filesReader) remarkEqual(nodes []*recording.Node) {
	hosts := map[string][]string{}
	kinds := map[string]workdir.Kind{}
	for _, n := range nodes {
		for i := range n.Databases {
			db := &n.Databases[i]
			if kind := db.Kind(r.ctx); !db.Shared && (kind == workdir.NB || kind == workdir.SB) && !slices.Contains(hosts[db.SHA256], n.Host) {
				hosts[db.SHA256] = append(hosts[db.SHA256], n.Host)
				kinds[db.SHA256] = kind
			}
		}
	}
	for _, sum := range slices.Sorted(maps.Keys(hosts)) {
		if len(hosts[sum]) > 1 {
			r.found.Remarks = append(r.found.Remarks, fmt.Sprintf("the %s databases of %s are equal", kinds[sum].Title(), recording.FirstNames(hosts[sum])))
		}
	}
}

// hasKind reports whether a node has a readable database of a kind.
func (r *filesReader) hasKind(n *recording.Node, kind workdir.Kind) bool {
	return slices.ContainsFunc(n.Databases, func(db recording.Database) bool { return db.Kind(r.ctx) == kind })
}
