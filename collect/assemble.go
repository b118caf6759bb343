package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
		if same := findHost(byName[shortName(n.Host)], n.Host); same != nil {
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
	if len(nodes) == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, strings.Join(append(r.found.Lost, "nothing of Open vSwitch or OVN could be read"), "; "))
	}
	return nil
}

func findHost(nodes []*recording.Node, host string) *recording.Node {
	if i := slices.IndexFunc(nodes, func(n *recording.Node) bool { return sameHost(n.Host, host) }); i >= 0 {
		return nodes[i]
	}
	return nil
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
	n.OVSVersion, n.OVNVersion = cmp.Or(n.OVSVersion, more.OVSVersion), cmp.Or(n.OVNVersion, more.OVNVersion)
	n.Host = cmp.Or(n.Host, more.Host)
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

// clusterDatabase is the best database of a kind that describes a whole cluster.
type clusterDatabase struct {
	recording.Database
	chassis []string
}

// shareCentral gives the databases of a cluster to every node of it that has an Open
// vSwitch and no such database. Databases that no node gets become a node of their own.
func (r *filesReader) shareCentral(nodes []*recording.Node) []*recording.Node {
	loose := r.loose.central
	best := r.clusterDatabases(nodes)
	if len(nodes) == 0 {
		if len(loose) == 0 {
			return nil
		}
		return []*recording.Node{{Source: *loose[0].Source, Databases: loose}}
	}
	chassis := best[workdir.SB].chassis
	given := map[string]bool{}
	for _, n := range nodes {
		if len(n.Bridges) == 0 && !r.hasKind(n, workdir.OVS) {
			continue
		}
		for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
			db, exists := best[kind]
			if !exists || r.hasKind(n, kind) || !r.isMember(n, chassis, len(nodes)) {
				continue
			}
			n.Databases = append(n.Databases, db.Database)
			given[db.Spooled] = true
		}
	}
	for _, n := range nodes {
		for i, db := range n.Databases {
			n.Databases[i].Shared = given[db.Spooled] // also on its own node, so that the file is copied, not moved
		}
	}
	var left []recording.Database
	for i := range loose {
		db := &loose[i]
		taken, exists := best[db.Kind(r.ctx)]
		if !given[db.Spooled] && !(exists && given[taken.Spooled]) {
			left = append(left, *db)
		}
	}
	if len(left) > 0 {
		nodes = append(nodes, &recording.Node{Host: "cluster", Source: *left[0].Source, Databases: left})
	}
	return nodes
}

// clusterDatabases returns the databases that describe a whole cluster: loose ones,
// and those in the reports of controllers. Of several members the largest counts.
func (r *filesReader) clusterDatabases(nodes []*recording.Node) map[workdir.Kind]clusterDatabase {
	best := map[workdir.Kind]clusterDatabase{}
	consider := func(db *recording.Database) {
		kind := db.Kind(r.ctx)
		if kind == "" || kind == workdir.OVS || best[kind].Size >= db.Size {
			return
		}
		if o := r.owner(db); o.readable && o.host == "" {
			best[kind] = clusterDatabase{*db, o.chassis}
		}
	}
	for i := range r.loose.central {
		consider(&r.loose.central[i])
	}
	if len(nodes) > 1 {
		for _, n := range nodes {
			for i := range n.Databases {
				if n.Databases[i].Source == nil {
					n.Databases[i].Source = &n.Source
				}
				consider(&n.Databases[i])
			}
		}
	}
	return best
}

// hasKind reports whether a node has a readable database of a kind.
func (r *filesReader) hasKind(n *recording.Node, kind workdir.Kind) bool {
	return slices.ContainsFunc(n.Databases, func(db recording.Database) bool { return db.Kind(r.ctx) == kind })
}

// isMember reports whether a node belongs to the cluster: the southbound database
// has it as a chassis. A lone node always does, since the user gives both.
func (r *filesReader) isMember(n *recording.Node, chassis []string, nodes int) bool {
	if nodes == 1 || slices.ContainsFunc(chassis, func(name string) bool { return sameHost(name, n.Host) }) {
		return true
	}
	return slices.ContainsFunc(n.Databases, func(db recording.Database) bool {
		if db.Kind(r.ctx) != workdir.OVS {
			return false
		}
		system := r.owner(&db).system
		return system != "" && slices.Contains(chassis, system)
	})
}

// nameNodes gives every node a name of its own.
func nameNodes(nodes []*recording.Node) []Named {
	used := map[string]bool{}
	var list []Named
	for _, n := range nodes {
		host := cmp.Or(n.Host, "node")
		name := host
		for i := 2; used[name]; i++ {
			name = fmt.Sprintf("%s-%d", host, i)
		}
		used[name] = true
		list = append(list, Named{Name: name, Node: n})
	}
	return list
}
