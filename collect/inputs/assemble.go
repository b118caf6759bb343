package inputs

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// assemble makes nodes of what was recognised: what is one host's comes
// together, and databases of a cluster go to its nodes.
func (g *gathering) assemble() error {
	nodes := slices.Clone(g.reports)
	sort.SliceStable(nodes, func(i, j int) bool { return nodes[i].Host < nodes[j].Host })
	byName := map[string][]*recording.Node{}
	for _, n := range nodes {
		byName[shortName(n.Host)] = append(byName[shortName(n.Host)], n)
	}
	for _, n := range g.loose.hosts() {
		if of := ofHost(byName[shortName(n.Host)], n.Host); of != nil {
			merge(of, n)
		} else {
			nodes = append(nodes, n)
		}
	}
	if u := g.loose.unnamed; u != nil {
		if len(nodes) == 1 {
			merge(nodes[0], u)
		} else {
			nodes = append(nodes, u)
		}
	}
	if err := g.limits.Nodes(len(nodes)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(g.paths, ", "), err)
	}
	for _, n := range nodes {
		n.BoundBridges()
		n.All = sorted(n.All)
		g.nameBridges(n)
	}
	nodes = g.shareCentral(nodes)
	g.found.Nodes = name(nodes)
	if len(nodes) == 0 {
		return fmt.Errorf("%w: %s", collect.ErrNothing, strings.Join(append(g.found.Lost, "nothing of Open vSwitch or OVN could be read"), "; "))
	}
	return nil
}

func ofHost(nodes []*recording.Node, host string) *recording.Node {
	for _, n := range nodes {
		if sameHost(n.Host, host) {
			return n
		}
	}
	return nil
}

// merge adds to a node what another source tells of it. Where both have a
// thing, the node's own stays: two dumps of different times don't mix.
func merge(n, more *recording.Node) {
	own := n.All
	have := map[string]bool{}
	for _, o := range own {
		have[string(o.Meaning)+" "+o.Bridge] = true
	}
	left := map[string]bool{}
	for _, o := range more.All {
		if have[string(o.Meaning)+" "+o.Bridge] {
			left[o.Origin] = true
			continue
		}
		o.Origin = more.Source.Name + ": " + o.Origin
		n.AddBridge(o.Bridge)
		n.All = append(n.All, o)
	}
	n.Bridges = slices.DeleteFunc(n.Bridges, func(b string) bool { return b == "" })
	for _, db := range more.Databases {
		if db.Source == nil {
			source := more.Source
			db.Source = &source
		}
		db.Second = true
		n.Databases = append(n.Databases, db)
	}
	if len(left) > 0 {
		n.Remarks = append(n.Remarks, fmt.Sprintf("%s has %d dumps of this node that were not taken, since %s has them too", more.Source.Name, len(left), n.Source.Name))
	}
	n.OVSVersion, n.OVNVersion = nameOr(n.OVSVersion, more.OVSVersion), nameOr(n.OVNVersion, more.OVNVersion)
	n.Host = nameOr(n.Host, more.Host)
	n.Remarks = append(n.Remarks, more.Remarks...)
	n.Lost = append(n.Lost, more.Lost...)
}

// nameBridges gives a dump whose bridge is told inexactly (a must-gather's
// underscores, a file's name) the name of the bridge that the database has.
func (g *gathering) nameBridges(n *recording.Node) {
	var real []string
	for _, db := range n.Databases {
		if info, err := g.inspect(db.File); err == nil && collect.KindOf(info.Name) == workdir.OVS && n.Source.Kind != "sos report" {
			real = append(real, g.owner(db.File).bridges...)
		}
	}
	if len(real) == 0 {
		return
	}
	dashes := strings.NewReplacer("_", "-", ".", "-")
	known, inexact, rename := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, r := range real {
		known[r], inexact[dashes.Replace(r)] = true, r
	}
	var strange []string
	for _, b := range n.Bridges {
		r := inexact[dashes.Replace(b)]
		if b == unnamedBridge && len(real) == 1 {
			r = real[0]
		}
		switch {
		case known[b]:
		case r != "":
			rename[b] = r
		default:
			strange = append(strange, b)
		}
	}
	if len(strange) > 0 {
		n.Remarks = append(n.Remarks, fmt.Sprintf("the dumps of bridge %s are of no bridge of conf.db, which has %s", recording.Some(strange), recording.Some(real)))
	}
	for i, b := range n.Bridges {
		n.Bridges[i] = nameOr(rename[b], b)
	}
	for i, o := range n.All {
		n.All[i].Bridge = nameOr(rename[o.Bridge], o.Bridge)
	}
	slices.Sort(n.Bridges)
	n.Bridges = slices.Compact(n.Bridges)
}

// central is the best database of a kind that speaks of a whole cluster.
type central struct {
	recording.Database
	chassis []string
}

// shareCentral gives the cluster's databases to every node that has an OVS of
// its own and none of them; to a node of their own where there is no such.
func (g *gathering) shareCentral(nodes []*recording.Node) []*recording.Node {
	best, all := g.centrals(nodes)
	if len(nodes) == 0 {
		if len(all) == 0 {
			return nil
		}
		n := &recording.Node{Source: *all[0].Source, Databases: all}
		return []*recording.Node{n}
	}
	if len(best) == 0 {
		return nodes
	}
	chassis := best[workdir.SB].chassis
	given := map[string]bool{}
	for _, n := range nodes {
		if len(n.Bridges) == 0 && !g.hasKind(n, workdir.OVS) {
			continue
		}
		for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
			db, there := best[kind]
			if !there || g.hasKind(n, kind) || !g.member(n, chassis, len(nodes)) {
				continue
			}
			n.Databases = append(n.Databases, db.Database)
			given[db.File] = true
		}
	}
	for _, n := range nodes {
		for i, db := range n.Databases {
			n.Databases[i].Shared = given[db.File] // its own node's too: it is not to be moved away
		}
	}
	var left []recording.Database
	for _, db := range g.loose.central {
		if !given[db.File] && !g.supersededBy(best, db, given) {
			left = append(left, db)
		}
	}
	if len(left) > 0 {
		nodes = append(nodes, &recording.Node{Host: "cluster", Source: *left[0].Source, Databases: left})
	}
	return nodes
}

// supersededBy tells whether another member's database of the same kind was
// taken in place of this one.
func (g *gathering) supersededBy(best map[workdir.Kind]central, db recording.Database, given map[string]bool) bool {
	info, err := g.inspect(db.File)
	return err == nil && given[best[collect.KindOf(info.Name)].File]
}

// centrals are the databases of whole clusters: loose ones, and those of the
// reports of controllers. Of several members' the largest counts.
func (g *gathering) centrals(nodes []*recording.Node) (best map[workdir.Kind]central, loose []recording.Database) {
	best = map[workdir.Kind]central{}
	consider := func(db recording.Database) {
		info, err := g.inspect(db.File)
		kind := collect.KindOf(info.Name)
		if err != nil || kind == "" || kind == workdir.OVS || best[kind].Size >= db.Size {
			return
		}
		if who := g.owner(db.File); who.readable && who.host == "" {
			best[kind] = central{db, who.chassis}
		}
	}
	for _, db := range g.loose.central {
		consider(db)
	}
	if len(nodes) > 1 {
		for _, n := range nodes {
			for _, db := range n.Databases {
				if db.Source == nil {
					source := n.Source
					db.Source = &source
				}
				consider(db)
			}
		}
	}
	return best, g.loose.central
}

// hasKind tells whether a node has a sound database of a kind.
func (g *gathering) hasKind(n *recording.Node, kind workdir.Kind) bool {
	for _, db := range n.Databases {
		if info, err := g.inspect(db.File); err == nil && collect.KindOf(info.Name) == kind {
			return true
		}
	}
	return false
}

// member tells whether a node is of the cluster: the southbound database names
// it. A lone node is taken for one, as the person who gives both says.
func (g *gathering) member(n *recording.Node, chassis []string, nodes int) bool {
	if nodes == 1 {
		return true
	}
	for _, name := range chassis {
		if sameHost(name, n.Host) {
			return true
		}
	}
	for _, db := range n.Databases {
		info, err := g.inspect(db.File)
		if err != nil || collect.KindOf(info.Name) != workdir.OVS {
			continue
		}
		if who := g.owner(db.File); who.system != "" && slices.Contains(chassis, who.system) {
			return true
		}
	}
	return false
}

// name gives every node a name of its own.
func name(nodes []*recording.Node) []Named {
	used := map[string]bool{}
	var list []Named
	for _, n := range nodes {
		host := nameOr(n.Host, "node")
		name := host
		for i := 2; used[name]; i++ {
			name = fmt.Sprintf("%s-%d", host, i)
		}
		used[name] = true
		list = append(list, Named{Name: name, Node: n})
	}
	return list
}
