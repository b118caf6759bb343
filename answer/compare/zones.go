package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// zonePair is an OVN deployment before and after, with its objects.
type zonePair struct {
	old, new *zone
	nb, sb   *databasePair // nil if one side lacks the database
	upgrade  *finding      // nil if both sides have one version
	links    *links        // nil until flows differ
}

// compareZones compares the OVN databases.
func (c *comparer) compareZones(ctx context.Context) error {
	for _, old := range c.old.zones {
		now := c.counterpart(old)
		if now == nil {
			c.missing("OVN databases of " + strings.Join(old.hosts(), ", ") + ": only " + c.old.name + " has them")
			continue
		}
		z := &zonePair{old: old, new: now}
		c.zones = append(c.zones, z)
		if err := c.compareZone(z); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, now := range c.new.zones {
		if c.zoneOf(now) == nil {
			c.missing("OVN databases of " + strings.Join(now.hosts(), ", ") + ": only " + c.new.name + " has them")
		}
	}
	return nil
}

// counterpart returns the zone after the change that has nodes of a zone before it, or the
// only one on each side.
func (c *comparer) counterpart(old *zone) *zone {
	if len(c.old.zones) == 1 && len(c.new.zones) == 1 {
		return c.new.zones[0]
	}
	for _, now := range c.new.zones {
		if c.zoneOf(now) == nil && slices.ContainsFunc(now.hosts(), func(n string) bool { return slices.Contains(old.hosts(), n) }) {
			return now
		}
	}
	return nil
}

// zoneOf returns the pair that a zone of either side is in, nil for none.
func (c *comparer) zoneOf(z *zone) *zonePair {
	for _, p := range c.zones {
		if z != nil && (p.old == z || p.new == z) {
			return p
		}
	}
	return nil
}

func (c *comparer) compareZone(zones *zonePair) error {
	var err error
	if zones.nb, err = c.readPair("OVN NB", zones.old.NB, zones.new.NB, northbound(), northNames(zones.old.rules), northNames(zones.new.rules)); err != nil {
		return err
	}
	if zones.sb, err = c.readPair("OVN SB", zones.old.SB, zones.new.SB, southbound(zones.nb == nil), noNames, noNames); err != nil {
		return err
	}
	if zones.nb != nil && zones.sb != nil {
		if err := zones.addBindings(); err != nil {
			return err
		}
	}
	c.compareVersions(zones)
	before := len(c.found)
	c.addFindings(zones.nb, "")
	c.addFindings(zones.sb, "")
	if len(c.old.zones) > 1 {
		for _, found := range c.found[before:] {
			found.Zones = []string{zones.old.title()}
		}
	}
	return nil
}

func noNames(string, ovsdb.Row) string { return "" }

// readPair reads a database of both sides; it returns nil if a side lacks it.
func (c *comparer) readPair(what string, old, now *file.Index, known map[string]table, oldNames, newNames func(string, ovsdb.Row) string) (*databasePair, error) {
	switch {
	case old == nil && now == nil:
		return nil, nil
	case old == nil:
		c.missing(what + ": only " + c.new.name + " has the database")
		return nil, nil
	case now == nil:
		c.missing(what + ": only " + c.old.name + " has the database")
		return nil, nil
	}
	older, err := readDatabase(old, known, oldNames)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c.old.name, what, err)
	}
	newer, err := readDatabase(now, known, newNames)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c.new.name, what, err)
	}
	return pairDatabases(older, newer), nil
}

// compareVersions compares the versions of OVN that wrote the databases.
func (c *comparer) compareVersions(z *zonePair) {
	old, now := versionOf(z.old.NB, z.old.SB).OVN, versionOf(z.new.NB, z.new.SB).OVN
	if old != now && old != "" && now != "" {
		z.upgrade = c.add(Finding{Kind: "version", Change: Changed, Name: "version of OVN", Columns: []Column{{Name: "ovn-northd", Old: old, New: now}}})
	}
}

func versionOf(databases ...*file.Index) versions.Pair {
	var infos []file.Info
	for _, x := range databases {
		if x != nil {
			infos = append(infos, x.Info)
		}
	}
	return versions.Of(versions.Pair{}, infos...)
}

// add adds a finding that is about no row.
func (c *comparer) add(f Finding) *finding {
	f.Flows = &FlowCount{}
	added := &finding{Finding: f}
	c.found = append(c.found, added)
	return added
}

// addFindings adds what differs in a database of a node, or of OVN. The parts of an object
// that was added or is gone are counted with it.
func (c *comparer) addFindings(databases *databasePair, node string) {
	if databases == nil {
		return
	}
	byObject := map[*object]*finding{}
	for _, pair := range databases.pairs {
		found := &finding{Finding: Finding{Kind: databases.new.kind(pair.any()), Node: node, Name: pair.any().name, Of: databases.ownerName(pair.any()), Flows: &FlowCount{}}, pair: pair, databases: databases}
		switch {
		case pair.old == nil && !databases.isPart(pair.new):
			found.Change = Added
		case pair.new == nil && !databases.isPart(pair.old):
			found.Change = Gone
		case pair.old != nil && pair.new != nil:
			found.Change, found.Columns = Changed, databases.columnsOf(pair)
			if len(found.Columns) == 0 {
				continue
			}
		default:
			continue
		}
		for _, o := range []*object{pair.old, pair.new} {
			found.addPorts(o, node)
		}
		byObject[pair.any()] = found
		c.found = append(c.found, found)
	}
	for _, p := range databases.pairs {
		if o := p.any(); (p.old == nil || p.new == nil) && databases.isPart(o) {
			if f := byObject[databases.whole(o)]; f != nil {
				f.count(databases.new.kind(o))
			}
		}
	}
}

// addPorts adds the ports of a node by which flows mention an object of its OVS database.
func (f *finding) addPorts(object *object, node string) {
	if object == nil || node == "" {
		return
	}
	if object.table == "Interface" {
		f.ports = append(f.ports, nodePort{node, portName(object.row.String("name"), object.row.String("type"), object.row.Map("options"))})
	}
	if f.Change == Changed {
		return // its parts are the same
	}
	for _, part := range object.parts {
		f.addPorts(part, node)
	}
}

func (f *finding) count(kind string) {
	if f.With == nil {
		f.With = map[string]int{}
	}
	f.With[kind]++
}

// ownerName names the switch, the router or the bridge that an object is a part of; "" for
// a part of several, or of something that the object's own name contains.
func (w *databasePair) ownerName(o *object) string {
	if o.owner != nil && !o.shared && slices.Contains([]string{"Logical_Switch", "Logical_Router", "Bridge", "Load_Balancer"}, o.owner.table) {
		return o.owner.name
	}
	return ""
}

// alone reports whether only one side has an object.
func (w *databasePair) alone(o *object) bool { return w.newOf[o] == nil && w.oldOf[o] == nil }

// isPart reports whether an object was added, or is gone, as a part of another one.
func (w *databasePair) isPart(o *object) bool { return o.owner != nil && w.alone(o.owner) }

// whole returns the object that an object was added with, or is gone with.
func (w *databasePair) whole(part *object) *object {
	for w.isPart(part) {
		part = part.owner
	}
	return part
}

// addBindings adds to the northbound ports where they are bound, according to the
// southbound database.
func (z *zonePair) addBindings() error {
	for _, side := range []struct {
		sb *file.Index
		db *database
	}{{z.old.SB, z.nb.old}, {z.new.SB, z.nb.new}} {
		bound, err := bindings(side.sb)
		if err != nil {
			return err
		}
		for _, o := range side.db.byTable["Logical_Switch_Port"] {
			o.state = bound[o.row.String("name")]
		}
		for _, o := range side.db.byTable["Logical_Router_Port"] {
			o.state = bound["cr-"+o.row.String("name")]
		}
	}
	return nil
}

// bindings returns where each logical port is bound.
func bindings(sb *file.Index) (map[string]map[string]string, error) {
	hosts := map[string]string{}
	chassis, err := ovn.ReadChassis(sb)
	if err != nil {
		return nil, err
	}
	for _, c := range chassis {
		hosts[c.UUID] = c.Title()
	}
	bound := map[string]map[string]string{}
	return bound, ovn.EachBinding(sb, func(b ovn.Binding) {
		state := map[string]string{}
		if b.Chassis != "" {
			state["chassis"] = hosts[b.Chassis]
		}
		var more []string
		for _, id := range b.Additional {
			more = append(more, hosts[id])
		}
		slices.Sort(more)
		if len(more) > 0 {
			state["additional chassis"] = strings.Join(more, ", ")
		}
		if b.VirtualParent != "" {
			state["virtual parent"] = b.VirtualParent
		}
		bound[b.Port] = state
	})
}
