package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// nodePair is a node before and after.
type nodePair struct {
	old, new  *capturedNode
	databases *databasePair // its OVS database; nil if one side lacks it
	upgrade   *finding
}

// compareNodes compares the OVS databases and the flows of the nodes that both sides have.
func (c *comparer) compareNodes(ctx context.Context) error {
	pairs := c.nodePairs()
	for _, p := range pairs {
		if err := c.compareNode(p); err != nil {
			return fmt.Errorf("node %s: %w", p.new.name, err)
		}
	}
	c.fold()
	for _, p := range pairs {
		if err := c.compareFlows(ctx, p); err != nil {
			return fmt.Errorf("node %s: %w", p.new.name, err)
		}
	}
	return nil
}

// nodePairs returns the nodes that both sides have, and adds a finding for each other node.
// If each side has one node, they are a pair, whatever their names are.
func (c *comparer) nodePairs() []*nodePair {
	if len(c.old.order) == 1 && len(c.new.order) == 1 {
		old, now := c.old.nodes[c.old.order[0]], c.new.nodes[c.new.order[0]]
		if old.name != now.name {
			c.remark(fmt.Sprintf("two nodes are compared: %s of %s, and %s of %s", old.name, c.old.name, now.name, c.new.name))
		}
		return []*nodePair{{old: old, new: now}}
	}
	var pairs []*nodePair
	for _, name := range c.old.order {
		if now := c.new.nodes[name]; now != nil {
			pairs = append(pairs, &nodePair{old: c.old.nodes[name], new: now})
		} else {
			c.add(Finding{Kind: "node", Change: Gone, Name: "node " + name})
		}
	}
	for _, name := range c.new.order {
		if c.old.nodes[name] == nil {
			c.add(Finding{Kind: "node", Change: Added, Name: "node " + name})
		}
	}
	return pairs
}

// compareNode compares the OVS databases of a node.
func (c *comparer) compareNode(pair *nodePair) error {
	var err error
	naming := func(table string, row ovsdb.Row) string {
		if table == ovsdb.OVS {
			return "settings of Open vSwitch"
		}
		return ""
	}
	if pair.databases, err = c.readPair("OVS database of "+pair.new.name, pair.old.ovs, pair.new.ovs, openvswitch(), naming, naming); err != nil || pair.databases == nil {
		return err
	}
	if old, now := versionOf(pair.old.ovs).OVS, versionOf(pair.new.ovs).OVS; old != now && old != "" && now != "" {
		pair.upgrade = c.add(Finding{Kind: "version", Change: Changed, Node: pair.new.name, Name: "version of Open vSwitch", Columns: []Column{{Name: "ovs-vswitchd", Old: old, New: now}}})
	}
	if err := c.addStates(pair); err != nil {
		return err
	}
	c.addFindings(pair.databases, pair.new.name)
	return nil
}

// stated lists, by table, the columns with states that no database file holds, or the
// elements of maps with them, as COLUMN:KEY.
func stated() map[string][]string {
	return map[string][]string{
		"Interface": {"admin_state", "link_state", "link_speed", "duplex", "mtu", "lacp_current", "cfm_fault",
			"bfd_status:state", "bfd_status:forwarding", "bfd_status:remote_state"},
		"Controller": {"is_connected", "role"},
		"Manager":    {"is_connected"},
	}
}

// counters lists the statistics whose growth is a fault.
func counters() []string {
	return []string{"rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "collisions", "rx_crc_err", "rx_frame_err", "rx_over_err", "rx_missed_errors"}
}

// addStates adds the recorded states of interfaces and controllers to their objects.
func (c *comparer) addStates(pair *nodePair) error {
	for table, columns := range stated() {
		old, oldOK, err := listing(pair.old.dir, table)
		if err != nil {
			return err
		}
		now, nowOK, err := listing(pair.new.dir, table)
		if err != nil {
			return err
		}
		if oldOK != nowOK {
			c.missing(fmt.Sprintf("states of %s of node %s: only one side has the output of ovs-vsctl list %s", strings.ToLower(table), pair.new.name, strings.ToLower(table)))
		}
		if !oldOK || !nowOK {
			continue
		}
		for object, newer := range pair.databases.newOf {
			before, hasBefore := old[object.row.UUID]
			after, hasAfter := now[newer.row.UUID]
			if object.table != table || !hasBefore || !hasAfter {
				continue
			}
			object.state, newer.state = states(before, columns), states(after, columns)
			if table == "Interface" {
				addCounters(object.state, newer.state, file.PrintedMap(before.Column("statistics")), file.PrintedMap(after.Column("statistics")))
			}
		}
	}
	return nil
}

// states returns the values of some columns of a printed row; an empty one is left out.
func states(record ovsdb.Record, columns []string) map[string]string {
	found := map[string]string{}
	for _, name := range columns {
		column, key, isElement := strings.Cut(name, ":")
		value := record.Column(column)
		if isElement {
			value = file.PrintedMap(value)[key]
		}
		if value != "" {
			found[name] = value
		}
	}
	return found
}

// addCounters adds the counters that grew. One that is smaller than before began again when
// ovs-vswitchd or the machine was started.
func addCounters(old, now, before, after map[string]string) {
	for _, name := range counters() {
		was, _ := strconv.ParseInt(before[name], 10, 64)
		is, _ := strconv.ParseInt(after[name], 10, 64)
		switch {
		case is > was:
			old[name], now[name] = strconv.FormatInt(was, 10), fmt.Sprintf("%d (%d more)", is, is-was)
		case is < was && is > 0:
			old[name], now[name] = strconv.FormatInt(was, 10), fmt.Sprintf("%d (counted again)", is)
		}
	}
}

// listing returns the rows of a table that ovs-vsctl list printed, by UUID; ok is false if its
// output was not recorded.
func listing(wd *workdir.Dir, table string) (rows map[string]ovsdb.Record, ok bool, err error) {
	file, ok, err := wd.Collected(wd.Recorded(workdir.RecordedList(table)))
	if !ok {
		return nil, false, err
	}
	defer file.Close()
	list, err := ovsdb.Listing(file)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", file.Name(), err)
	}
	rows = map[string]ovsdb.Record{}
	for _, r := range list {
		rows[r.UUID] = r
	}
	return rows, true, nil
}

// fold moves what follows from another finding to that finding.
func (c *comparer) fold() {
	for _, f := range c.found {
		c.addName(f)
	}
	for _, f := range slices.Clone(c.found) {
		if cause := c.causeOf(f); cause != nil && cause != f {
			c.foldInto(cause, f)
		}
	}
	c.found = slices.DeleteFunc(c.found, func(f *finding) bool { return f.folded != nil })
}

func (c *comparer) foldInto(cause, finding *finding) {
	text := fmt.Sprintf("%s %s", finding.Subject(), finding.Change)
	if finding.Node != "" {
		text = finding.Node + ": " + text
	}
	for cause.folded != nil {
		cause = cause.folded
	}
	cause.Follows = append(append(cause.Follows, text), finding.Follows...)
	finding.folded = cause
	cause.ports = append(cause.ports, finding.ports...)
	c.folded = append(c.folded, finding)
}

// causeOf returns the finding that a finding follows from, nil for none.
func (c *comparer) causeOf(finding *finding) *finding {
	switch {
	case finding.Kind == "chassis" && finding.isAbilities():
		return c.upgradeOf(finding.databases)
	case finding.Kind == "flow table settings" && finding.Change != Changed: // of newer versions of ovn-controller
		return c.upgradeOf(nil)
	case finding.Kind == "chassis":
		return c.settingsOf(finding)
	case finding.Kind == "node":
		return c.chassisOf(finding)
	case finding.databases == nil || finding.Node == "":
		return nil
	}
	if finding.Change == Changed && !slices.ContainsFunc(finding.Columns, func(c Column) bool { return strings.HasPrefix(c.Name, "options:") }) {
		return nil
	}
	for _, ids := range idsOf(finding.pair) {
		if chassis, _, _ := strings.Cut(ids["ovn-chassis-id"], "@"); chassis != "" {
			if cause := c.findingNamed("chassis", chassis); cause != nil {
				return cause
			}
			return c.upgradeOf(nil) // another version makes other tunnels
		}
		if finding.Change == Changed {
			continue
		}
		for _, key := range []string{"iface-id", "ovn-localnet-port", "ovn-l3gateway-port", "ovn-logical-patch-port"} {
			if ids[key] != "" {
				if cause := c.findingNamed(rules.KindPort, ids[key]); cause != nil {
					return cause
				}
			}
		}
		if ids["ovn-localnet-port"] != "" {
			return c.ovnSettings(finding.Node)
		}
	}
	return nil
}

// chassisOf returns the finding about the chassis of a node, nil for none.
func (c *comparer) chassisOf(node *finding) *finding {
	for _, f := range c.found {
		if f.Kind == "chassis" && f.Change == node.Change && "node "+f.pair.any().row.String("hostname") == node.Name {
			return f
		}
	}
	return nil
}

// isAbilities reports whether only what the ovn-controller of a chassis can do differs.
func (f *finding) isAbilities() bool {
	return f.Change == Changed && !slices.ContainsFunc(f.Columns, func(c Column) bool {
		isAbility := c.Name == "other_config:iface-types" || c.Old+c.New == "true" || c.Old+c.New == "false" // which only one of both releases names
		return !strings.HasPrefix(c.Name, "other_config:") || !isAbility
	})
}

// upgradeOf returns the finding about the version of OVN that wrote a southbound database,
// or any one for nil; nil if it is the same version.
func (c *comparer) upgradeOf(sb *databasePair) *finding {
	for _, z := range c.zones {
		if z.upgrade != nil && (sb == nil || z.sb == sb) {
			return z.upgrade
		}
	}
	return nil
}

// idsOf returns the external_ids of an object, its owner and its parts before and after.
func idsOf(p pair) []map[string]string {
	var all []map[string]string
	for _, side := range []*object{p.old, p.new} {
		if side == nil {
			continue
		}
		all = append(all, side.row.Map("external_ids"))
		if side.owner != nil {
			all = append(all, side.owner.row.Map("external_ids"))
		}
		for _, part := range side.parts {
			all = append(all, part.row.Map("external_ids"))
		}
	}
	return all
}

// findingNamed returns the finding of a kind about an object with a name, before or after; nil for
// none.
func (c *comparer) findingNamed(kind, name string) *finding { return c.byName[kind+" "+name] }

// addName adds a finding to the findings that findingNamed returns.
func (c *comparer) addName(f *finding) {
	for _, o := range []*object{f.pair.old, f.pair.new} {
		if o != nil && f.Node == "" {
			c.byName[f.Kind+" "+cmp.Or(o.row.String("name"), o.row.String("logical_port"))] = f
		}
	}
}

// settingsOf returns the finding about changed settings of OVN on the node of a chassis, nil for
// none.
func (c *comparer) settingsOf(finding *finding) *finding {
	if finding.Change != Changed {
		return nil
	}
	for _, other := range c.found {
		if other.Kind == "Open vSwitch settings" && other.pair.new != nil &&
			other.pair.new.row.Map("external_ids")["system-id"] == finding.pair.new.row.String("name") && c.ovnSettings(other.Node) == other {
			return other
		}
	}
	return nil
}

// ovnSettings returns the finding about changed settings of OVN on a node, nil for none.
func (c *comparer) ovnSettings(node string) *finding {
	for _, f := range c.found {
		if f.Kind == "Open vSwitch settings" && f.Node == node &&
			slices.ContainsFunc(f.Columns, func(c Column) bool { return strings.HasPrefix(c.Name, "external_ids:ovn-") }) {
			return f
		}
	}
	return nil
}
