package collect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// assemble makes nodes of what was recognised: the data of one host becomes one
// node, and each node gets the databases of its cluster.
func (r *filesReader) assemble() error {
	nodes := slices.Clone(r.reports)
	slices.SortStableFunc(nodes, func(a, b *recording.Recording) int { return cmp.Compare(a.Host, b.Host) })
	byName := map[string][]*recording.Recording{}
	for _, node := range nodes {
		byName[shortName(node.Host)] = append(byName[shortName(node.Host)], node)
	}
	for _, node := range r.loose.hosts() {
		if same := nearestHost(byName[shortName(node.Host)], node); same != nil {
			merge(same, node)
		} else {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 && r.loose.unnamed == nil && len(r.loose.central) == 0 && len(r.loose.statuses) > 0 {
		nodes = append(nodes, &recording.Recording{Source: workdir.Source{Kind: "files", Name: r.Paths[0]}})
	}
	if node := r.loose.unnamed; node != nil && len(nodes) == 1 {
		merge(nodes[0], node)
	} else if node != nil {
		nodes = append(nodes, node)
	}
	if err := r.Limits.CheckNodes(len(nodes)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(r.Paths, ", "), err)
	}
	for _, node := range nodes {
		if err := putTogether(r.ctx, r.spool, node); err != nil {
			return err
		}
		node.LimitBridges()
		node.LimitNamespaces()
		slices.SortStableFunc(node.All, func(a, b recording.Output) int { return cmp.Compare(b.OpenFlow, a.OpenFlow) })
		r.renameBridges(node)
	}
	var hostOnly []*recording.Recording
	nodes = slices.DeleteFunc(nodes, func(node *recording.Recording) bool {
		if isHostOnly(node) {
			hostOnly = append(hostOnly, node)
		}
		return isHostOnly(node)
	})
	nodes = placeHostOnly(r.shareCentral(nodes), hostOnly)
	if err := r.placeStatuses(nodes); err != nil {
		return err
	}
	r.found.Nodes = nameNodes(nodes)
	r.found.Members = r.findMembers(r.found.Nodes)
	for _, named := range r.found.Nodes {
		r.remarkApart(named.Recording)
		if named.LacksOVN {
			named.Remarks = append(named.Remarks, fmt.Sprintf("%s uses OVN (ovn-remote), and %s%s", named.Name, workdir.LacksOVN, named.NoOVN))
		}
	}
	if len(nodes) == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, strings.Join(append(slices.Concat(r.found.Lost, r.found.Remarks), "nothing of Open vSwitch or OVN could be read"), "; "))
	}
	return nil
}

// nearestHost returns the report of a node that was made nearest in time to the data
// of it in another source; nil if there is none, or if time does not decide.
func nearestHost(reports []*recording.Recording, node *recording.Recording) *recording.Recording {
	var same []*recording.Recording
	for _, report := range reports {
		if sameHost(report.Host, node.Host) {
			same = append(same, report)
		}
	}
	if len(same) == 0 {
		return nil
	}
	unknown := func(node *recording.Recording) bool { return !node.Taken.Known() }
	if len(same) > 1 && (unknown(node) || slices.ContainsFunc(same, unknown)) {
		return nil
	}
	byDay := node.Taken.DayOnly || slices.ContainsFunc(same, func(report *recording.Recording) bool { return report.Taken.DayOnly })
	distance := func(report *recording.Recording) time.Duration { return node.Taken.Distance(report.Taken, byDay) }
	slices.SortStableFunc(same, func(a, b *recording.Recording) int { return cmp.Compare(distance(a), distance(b)) })
	if len(same) > 1 && distance(same[0]) == distance(same[1]) {
		return nil
	}
	return same[0]
}

// merge adds the data of another source to a node. If both have an output, only
// the node's own is kept: dumps of different times do not fit together.
func merge(node, more *recording.Recording) {
	const together = time.Hour // of a must-gather and the reports in it
	sameTime := node.Taken.Known() && more.Taken.Known() && node.Taken.Distance(more.Taken, node.Taken.DayOnly || more.Taken.DayOnly) < together
	own := node.BySubject()
	left := map[string]bool{}
	for _, output := range more.All {
		if _, exists := own[output.Subject()]; exists {
			left[output.Origin] = true
			continue
		}
		output.Origin = more.Source.Name + ": " + output.Origin
		node.Mixed = node.Mixed || !sameTime && !isOfHost(output)
		if output.Bridge != "" {
			node.AddBridge(output.Bridge)
		}
		node.All = append(node.All, output)
	}
	node.Parts = append(node.Parts, more.Parts...)
	for _, db := range more.Databases {
		if db.Source == nil {
			db.Source = &more.Source
		}
		db.Foreign = true
		node.Databases = append(node.Databases, db)
	}
	if len(left) > 0 {
		node.Remarks = append(node.Remarks, fmt.Sprintf("%s has %d dumps of this node that were not taken, since %s has them too", more.Source.Name, len(left), node.Source.Name))
	}
	node.Logs, node.HostLogs, node.HostFiles = append(node.Logs, more.Logs...), append(node.HostLogs, more.HostLogs...), append(node.HostFiles, more.HostFiles...)
	node.OVSVersion, node.OVNVersion = cmp.Or(node.OVSVersion, more.OVSVersion), cmp.Or(node.OVNVersion, more.OVNVersion)
	node.Host, node.Image = cmp.Or(node.Host, more.Host), cmp.Or(node.Image, more.Image)
	node.Remarks = append(node.Remarks, more.Remarks...)
	for kind, texts := range more.LostDatabases {
		for _, text := range texts {
			node.LoseDatabase(kind, text)
			more.Lost = slices.DeleteFunc(more.Lost, func(lost string) bool { return lost == text })
		}
	}
	node.Lost = append(node.Lost, more.Lost...)
}

// renameBridges replaces the name of a bridge that its source spells inexactly (a
// must-gather's underscores, a file's name) by that in the OVS database.
func (r *filesReader) renameBridges(node *recording.Recording) {
	var real []string
	for i := range node.Databases {
		if db := &node.Databases[i]; node.Source.Kind != "sos report" && db.Kind(r.ctx) == workdir.OVS {
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
	for _, bridge := range node.Bridges {
		name := cmp.Or(inexact[dashes.Replace(bridge)], bridgeAmong(bridge, real))
		if bridge == unnamedBridge && len(real) == 1 {
			name = real[0]
		}
		switch {
		case known[bridge]:
		case name != "":
			rename[bridge] = name
		default:
			unknown = append(unknown, bridge)
		}
	}
	if len(unknown) > 0 {
		node.Remarks = append(node.Remarks, fmt.Sprintf("there are dumps of the bridges %s, which conf.db does not have; it has %s", phrase.FirstNames(unknown), phrase.FirstNames(real)))
	}
	for i, bridge := range node.Bridges {
		node.Bridges[i] = cmp.Or(rename[bridge], bridge)
	}
	for i, output := range node.All {
		node.All[i].Bridge = cmp.Or(rename[output.Bridge], output.Bridge)
	}
	slices.Sort(node.Bridges)
	node.Bridges = slices.Compact(node.Bridges)
}

// shareCentral gives the databases of a deployment to its nodes that have no such
// database. Databases that no node gets become nodes of their own.
func (r *filesReader) shareCentral(nodes []*recording.Recording) []*recording.Recording {
	r.loose.central = r.withoutCopies(r.loose.central)
	matcher := &matcher{filesReader: r, alone: len(nodes) == 1, candidates: map[workdir.Kind][]candidate{}, given: map[string]bool{}}
	matcher.addCandidates(nodes)
	for _, node := range nodes {
		matcher.assign(node)
	}
	for _, node := range nodes {
		for i, db := range node.Databases {
			node.Databases[i].Shared = matcher.given[db.Spooled] // also on its own node, so that the file is copied, not moved
		}
	}
	r.remarkEqual(nodes)
	return append(nodes, matcher.leftover()...)
}

// addCandidates adds the databases of whole deployments: loose ones, and those in
// reports where there are several nodes.
func (m *matcher) addCandidates(nodes []*recording.Recording) {
	for _, db := range m.loose.central {
		m.addCandidate(db, nil, m.taken[db.Source.Name])
	}
	if m.alone && len(m.loose.central) == 0 {
		return
	}
	for _, node := range nodes {
		for i := range node.Databases {
			db := &node.Databases[i]
			if kind := db.Kind(m.ctx); kind == "" || kind == workdir.OVS {
				continue
			}
			if db.Source == nil {
				db.Source = &node.Source
			}
			db.Holder = node.Host
			m.addCandidate(*db, node, node.Taken)
		}
	}
}

func (m *matcher) addCandidate(db recording.Database, holder *recording.Recording, taken recording.Moment) {
	info, _ := db.Inspect(m.ctx) // the kind of the database is known, so it can be read
	if owner := m.owner(&db); owner.readable && owner.host == "" {
		kind := workdir.KindOfSchema(info.Name)
		m.candidates[kind] = append(m.candidates[kind], candidate{Database: db, owner: owner, holder: holder, taken: taken, server: info.Server})
	}
}

// clusterNode is the name of the node of databases that no node got.
const clusterNode = "cluster"

// leftover returns nodes of the loose databases that no node got, one for each
// deployment. A file of a member of a cluster is left out if a node got another's.
func (m *matcher) leftover() []*recording.Recording {
	var nodes []*recording.Recording
	var firsts []candidate
	for _, db := range m.loose.central {
		kind := db.Kind(m.ctx)
		c := candidate{Database: db, owner: m.owner(&db)}
		if m.given[db.Spooled] || slices.ContainsFunc(m.candidates[kind], func(other candidate) bool { return m.given[other.Spooled] && other.global == c.global }) {
			continue
		}
		i := slices.IndexFunc(firsts, func(first candidate) bool { return m.mayShareDeployment(c, first) })
		if i < 0 {
			firsts = append(firsts, c)
			nodes = append(nodes, &recording.Recording{Host: clusterNode, Source: *db.Source, Taken: m.taken[db.Source.Name]})
			i = len(nodes) - 1
		}
		nodes[i].Databases = append(nodes[i].Databases, db)
	}
	return nodes
}

// mayShareDeployment reports whether two loose databases may be of one deployment.
func (m *matcher) mayShareDeployment(a, b candidate) bool {
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
			r.found.Remarks = append(r.found.Remarks, fmt.Sprintf("%d files are the same %s database, and count as one: %s", len(same), kept[i].Kind(r.ctx).Title(), phrase.FirstNames(same)))
		}
	}
	return kept
}

// remarkEqual adds a remark about nodes whose own OVN databases are equal: nodes of OVN
// interconnect have different ones.
func (r *filesReader) remarkEqual(nodes []*recording.Recording) {
	hosts := map[string][]string{}
	kinds := map[string]workdir.Kind{}
	for _, node := range nodes {
		for i := range node.Databases {
			db := &node.Databases[i]
			if kind := db.Kind(r.ctx); !db.Shared && (kind == workdir.NB || kind == workdir.SB) && !slices.Contains(hosts[db.SHA256], node.Host) {
				hosts[db.SHA256] = append(hosts[db.SHA256], node.Host)
				kinds[db.SHA256] = kind
			}
		}
	}
	for _, sum := range slices.Sorted(maps.Keys(hosts)) {
		if len(hosts[sum]) > 1 {
			r.found.Remarks = append(r.found.Remarks, fmt.Sprintf("the %s databases of %s are equal", kinds[sum].Title(), phrase.FirstNames(hosts[sum])))
		}
	}
}

// hasKind reports whether a node has a readable database of a kind.
func (r *filesReader) hasKind(node *recording.Recording, kind workdir.Kind) bool {
	return slices.ContainsFunc(node.Databases, func(db recording.Database) bool { return db.Kind(r.ctx) == kind })
}
