package compare

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/trace/rules"
)

// explainer finds why flows of a bridge differ.
type explainer struct {
	*comparer
	pair     *nodePair
	zone     *zonePair // nil for a node without OVN databases
	bridge   string
	old, new *bridgeFlows
}

// differing is a flow that differs, with what it was made from.
type differing struct {
	flowDifference
	flow  openflow.Flow // the flow after the change, or that before it
	side  *bridgeFlows  // that it is of
	other *bridgeFlows
	rule  rules.Rule
	known bool   // rule is known
	kept  bool   // both sides have the row that the flow was made from
	text  string // in names
}

// explain adds each difference to the finding that it follows from, or lists it.
func (e *explainer) explain(ctx context.Context, all []flowDifference) error {
	list := make([]differing, 0, len(all))
	for _, d := range all {
		x := differing{flowDifference: d, side: e.new, other: e.old}
		if d.new == nil {
			x.side, x.other = e.old, e.new
			x.flow = *d.old
		} else {
			x.flow = *d.new
		}
		var err error
		if x.rule, x.known, err = x.side.rule(x.flow); err != nil {
			return err
		}
		if d.old != nil && d.new != nil && x.rule.Row == "" { // whoever changed it did not keep the cookie
			if x.rule, x.known, err = e.old.rule(*d.old); err != nil {
				return err
			}
			x.side, x.other, x.flow = e.old, e.new, *d.old
		}
		match, actions := x.side.named(x.flow)
		x.text = match + " actions=" + actions
		list = append(list, x)
	}
	if err := e.findKept(list); err != nil {
		return err
	}
	links := e.links()
	for i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := &list[i]
		if f := e.causeOf(x, links); f != nil {
			f.countFlow(x)
			continue
		}
		e.list(x)
	}
	return nil
}

func (f *finding) countFlow(x *differing) {
	switch {
	case x.old == nil:
		f.Flows.Added++
	case x.new == nil:
		f.Flows.Gone++
	default:
		f.Flows.Changed++
	}
}

// list adds a finding for a flow that follows from nothing else.
func (e *explainer) list(x *differing) {
	f := Finding{Kind: "flow", Node: e.pair.new.name, Name: fmt.Sprintf("flow of %s, %s", e.bridge, x.rule.Stage), Change: Changed}
	if x.known && x.rule.Row != "" && x.rule.Words != "" {
		f.Name += ": " + x.rule.Words
	}
	match, actions := "", ""
	switch {
	case x.old == nil:
		f.Change = Added
		match, actions = e.new.named(*x.new)
		f.Columns = []Column{{Name: "actions", New: actions}}
	case x.new == nil:
		f.Change = Gone
		match, actions = e.old.named(*x.old)
		f.Columns = []Column{{Name: "actions", Old: actions}}
	default:
		_, before := e.old.named(*x.old)
		match, actions = e.new.named(*x.new)
		f.Columns = []Column{{Name: "actions", Old: before, New: actions}}
	}
	f.Match = match
	e.found = append(e.found, &finding{Finding: f})
}

// links are the findings of an OVN deployment by what can lead to them.
type links struct {
	rows     map[string]*finding        // by the UUID of a row
	names    map[string]*finding        // by a name in the match of a logical flow
	members  map[string]*finding        // by the name of a port group whose addresses differ because a port does
	on       map[string][]*finding      // by the name of a datapath that they touch
	near     map[string]map[string]bool // the datapaths that are joined with a datapath
	anywhere []*finding                 // findings that can change any flow
}

// causeOf returns the finding that a flow differs for, nil if there is none.
func (e *explainer) causeOf(x *differing, l *links) *finding {
	if f := e.direct(x, l); f != nil {
		return f
	}
	if x.known && x.rule.Row == "" && strings.Contains(x.text, "conjunction(") { // several ACLs share the flow
		if f := pick(l.on[x.rule.Datapath.Name], "ACL", "port group", "address set"); f != nil {
			return f
		}
	}
	if f := e.mentioned(x, l); f != nil {
		return f
	}
	if !x.known || e.zone == nil {
		return nil
	}
	datapath := x.rule.Datapath.Name
	moved := datapath != "" && e.old.local[datapath] != e.new.local[datapath]
	switch {
	case !x.kept || moved:
	case x.rule.Row == "Logical_Flow":
		return nil
	case x.rule.Row == "Multicast_Group": // its members are elsewhere
		for _, f := range l.on[datapath] {
			if f.movesAddresses() && (f.Kind == "port" || f.Kind == "router port") {
				return f
			}
		}
		return nil
	default:
		return e.ovnSettings(e.pair.new.name)
	}
	return l.nearest(datapath, x.rule.Stage)
}

// direct returns the finding about the row that a flow was made from.
func (e *explainer) direct(x *differing, l *links) *finding {
	if !x.known || e.zone == nil {
		return nil
	}
	if f := l.rows[x.rule.Cause.UUID]; f != nil {
		return f
	}
	row, ok, err := x.side.zone.sb.Row(x.rule.Row, x.rule.UUID)
	if err != nil || !ok {
		return nil
	}
	switch x.rule.Row {
	case "Port_Binding":
		return l.names[strings.TrimPrefix(row.String("logical_port"), "cr-")]
	case "Load_Balancer":
		return l.rows[row.Map("external_ids")["lb_id"]]
	}
	return l.rows[x.rule.UUID]
}

// mention matches the names of ports, address sets and port groups in a logical flow, and
// of ports in a flow in names.
var mention = regexp.MustCompile(`"([^"]+)"|[$@]([A-Za-z_.:0-9-]+)`)

// mentions returns the names in a text.
func mentions(text string) []string {
	var names []string
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}

// mentioned returns the finding about what a flow, or the logical flow that it was made
// from, names.
func (e *explainer) mentioned(x *differing, l *links) *finding {
	logical := x.rule.Match + " " + x.rule.Actions
	for _, place := range []struct {
		text  string
		names map[string]*finding
	}{{logical, l.names}, {logical, l.members}, {x.text, l.names}} {
		for _, name := range mentions(place.text) {
			for _, candidate := range []string{name, strings.TrimPrefix(name, "cr-"), strings.TrimSuffix(strings.TrimSuffix(name, "_ip4"), "_ip6")} {
				if f := place.names[candidate]; f != nil {
					return f
				}
			}
		}
	}
	for _, f := range e.found {
		for _, port := range f.ports {
			if port.node == e.pair.new.name && hasPort(x.text, port.name) {
				return f
			}
		}
	}
	return nil
}

// hasPort reports whether a flow in names matches on a port or sends to it.
func hasPort(text, name string) bool {
	for rest := text; name != ""; {
		_, after, found := strings.Cut(rest, name)
		if !found {
			return false
		}
		before := rest[:len(rest)-len(after)-len(name)]
		begins := strings.HasSuffix(before, "in_port=") || strings.HasSuffix(before, "output:") || strings.HasSuffix(before, ",") || strings.HasSuffix(before, "members:")
		if ends := after == "" || strings.IndexByte(", )]", after[0]) >= 0; begins && ends {
			return true
		}
		rest = after
	}
	return false
}

// nearest returns a finding that touches a datapath, or else one that touches a datapath
// near it; of several, one that the stage is about.
func (l *links) nearest(datapath, stage string) *finding {
	seen := map[string]bool{datapath: true}
	for ring := []string{datapath}; len(ring) > 0; {
		var candidates []*finding
		var next []string
		for _, d := range ring {
			candidates = append(candidates, l.on[d]...)
			for n := range l.near[d] {
				if !seen[n] {
					seen[n] = true
					next = append(next, n)
				}
			}
		}
		if len(candidates) > 0 {
			return best(candidates, stage)
		}
		slices.Sort(next)
		ring = next
	}
	if len(l.anywhere) > 0 {
		return l.anywhere[0]
	}
	return nil
}

// best returns the finding that a stage is about, or else one about a port.
func best(candidates []*finding, stage string) *finding {
	for _, about := range []struct {
		part  string
		kinds []string
	}{
		{"acl", []string{"ACL", "port group"}}, {"lb", []string{"load balancer", "load balancer group"}}, {"nat", []string{"NAT", "load balancer"}},
		{"stateful", []string{"load balancer", "ACL", "NAT"}}, {"qos", []string{"QoS rule"}}, {"dhcp", []string{"DHCP options"}}, {"dns", []string{"DNS records"}},
		{"policy", []string{"policy route"}}, {"routing", []string{"route", "router port"}}, {"", []string{"port", "router port", "switch", "router"}},
	} {
		if strings.Contains(stage, about.part) {
			if f := pick(candidates, about.kinds...); f != nil {
				return f
			}
		}
	}
	return candidates[0]
}

// pick returns the first finding of the first of these kinds that there is.
func pick(candidates []*finding, kinds ...string) *finding {
	for _, kind := range kinds {
		for _, f := range candidates {
			if f.Kind == kind {
				return f
			}
		}
	}
	return nil
}

// links collects the findings of the node's deployment.
func (e *explainer) links() *links {
	l := &links{rows: map[string]*finding{}, names: map[string]*finding{}, members: map[string]*finding{}, on: map[string][]*finding{}, near: map[string]map[string]bool{}}
	if e.zone == nil || e.zone.nb == nil {
		return l
	}
	if e.zone.links != nil {
		return e.zone.links
	}
	e.zone.links = l
	of := map[*object]*finding{}
	for _, f := range e.folded {
		for _, o := range []*object{f.pair.old, f.pair.new} {
			if o != nil {
				of[o] = f.folded
			}
		}
	}
	for _, f := range e.found {
		for _, o := range []*object{f.pair.old, f.pair.new} {
			if o != nil {
				of[o] = f
			}
		}
		if f.world == e.zone.nb && f.Kind == "OVN settings" {
			for _, c := range f.Columns { // some are address sets: $svc_monitor_mac
				l.names[strings.TrimPrefix(c.Name, "options:")] = f
			}
		}
		if f.world == e.zone.nb && (f.Kind == "OVN settings" || f.Kind == "control plane protection" || f.Kind == "meter") || f.Kind == "chassis" {
			l.anywhere = append(l.anywhere, f)
		}
	}
	for _, w := range []*world{e.zone.nb, e.zone.sb} {
		if w != nil {
			for _, db := range []*database{w.old, w.new} {
				l.addRows(w, db, of)
			}
		}
	}
	for _, db := range []*database{e.zone.nb.old, e.zone.nb.new} {
		l.addPlaces(db)
	}
	return l
}

// addRows adds the rows of the objects that differ, and their names.
func (l *links) addRows(w *world, db *database, of map[*object]*finding) {
	for uuid, o := range db.objects {
		f := of[o]
		if f == nil && w.alone(o) {
			f = of[w.whole(o)]
		}
		if f == nil {
			continue
		}
		l.rows[uuid] = f
		switch o.table {
		case "Logical_Switch_Port", "Logical_Router_Port", "Address_Set", "Port_Group", "Load_Balancer":
			l.names[o.row.String("name")] = f
		}
	}
	for _, group := range db.byTable["Port_Group"] {
		for _, id := range group.row.UUIDs("ports") {
			if f := l.rows[id]; f != nil && f.movesAddresses() {
				l.members[group.row.String("name")] = f
			}
		}
	}
	for _, o := range db.byTable["Logical_Switch_Port"] { // what is made from it depends on the router's port
		if f := l.names[o.row.Map("options")["router-port"]]; f != nil && l.rows[o.row.UUID] == nil {
			l.rows[o.row.UUID] = f
		}
	}
}

// movesAddresses reports whether addresses of a port came, went or are elsewhere.
func (f *finding) movesAddresses() bool {
	return f.Change != Changed || slices.ContainsFunc(f.Columns, func(c Column) bool {
		return c.Name == "addresses" || c.Name == "dynamic_addresses" || c.Name == "chassis"
	})
}

// addPlaces adds the datapaths that the findings touch, and which datapaths are joined.
func (l *links) addPlaces(db *database) {
	place := map[string]string{}    // the datapath of a row
	places := map[string][]string{} // the datapaths of a row that several refer to
	for _, table := range []string{"Logical_Switch", "Logical_Router"} {
		for _, d := range db.byTable[table] {
			name := d.row.String("name")
			place[d.row.UUID] = name
			for _, part := range d.parts {
				place[part.row.UUID] = name
			}
			for _, ids := range d.row.References() {
				for _, id := range ids {
					places[id] = append(places[id], name)
				}
			}
		}
	}
	l.join(db, place)
	for _, table := range []string{"Port_Group", "Load_Balancer_Group", "Logical_Switch_Port"} {
		for _, o := range db.byTable[table] {
			for column, ids := range o.row.References() {
				for _, id := range ids {
					switch {
					case table == "Logical_Switch_Port": // its DHCP options
						places[id] = append(places[id], place[o.row.UUID])
					case column == "ports":
						places[o.row.UUID] = append(places[o.row.UUID], place[id])
					}
				}
			}
			for column, ids := range o.row.References() {
				for _, id := range ids {
					if column != "ports" {
						places[id] = append(places[id], places[o.row.UUID]...)
					}
				}
			}
		}
	}
	for _, acl := range db.byTable["ACL"] {
		for _, name := range mentions(acl.row.String("match")) {
			if f := l.names[name]; f != nil && f.Kind == "address set" {
				l.touch(f, append(slices.Clone(places[acl.row.UUID]), place[acl.row.UUID])...)
			}
		}
	}
	for uuid, f := range l.rows {
		l.touch(f, append(slices.Clone(places[uuid]), place[uuid])...)
	}
	for name := range l.on {
		slices.SortFunc(l.on[name], func(a, b *finding) int { return strings.Compare(a.Name, b.Name) })
	}
}

// touch adds the datapaths that a finding touches.
func (l *links) touch(f *finding, datapaths ...string) {
	for _, name := range datapaths {
		if name != "" && !slices.Contains(l.on[name], f) {
			l.on[name] = append(l.on[name], f)
		}
	}
}

// join adds which switches and routers are joined by their ports.
func (l *links) join(db *database, place map[string]string) {
	routers := map[string]string{}
	for _, o := range db.byTable["Logical_Router_Port"] {
		routers[o.row.String("name")] = place[o.row.UUID]
	}
	add := func(a, b string) {
		if l.near[a] == nil {
			l.near[a] = map[string]bool{}
		}
		l.near[a][b] = true
	}
	for _, o := range db.byTable["Logical_Switch_Port"] {
		if router := routers[o.row.Map("options")["router-port"]]; router != "" {
			add(place[o.row.UUID], router)
			add(router, place[o.row.UUID])
		}
	}
	for _, o := range db.byTable["Logical_Router_Port"] {
		if peer := routers[o.row.String("peer")]; peer != "" {
			add(place[o.row.UUID], peer)
			add(peer, place[o.row.UUID])
		}
	}
}

// logicalKey is what makes a logical flow the same in another database.
type logicalKey struct{ stage, priority, match, actions string }

func keyOf(stage string, priority int, match, actions string) logicalKey {
	return logicalKey{stage, strconv.Itoa(priority), match, actions}
}

// findKept sets which flows were made from a row that both sides have.
func (e *explainer) findKept(list []differing) error {
	wanted := map[*file.Index]map[logicalKey][]*differing{}
	for i := range list {
		x := &list[i]
		if !x.known || e.zone == nil || e.zone.sb == nil || x.rule.Row == "" {
			continue
		}
		other := x.other.node.zone.sb
		switch {
		case hasRow(other, x.rule.Row, x.rule.UUID):
			x.kept = x.rule.Row == "Logical_Flow" || sameRow(x.side.node.zone.sb, other, x.rule)
		case x.rule.Row == "Logical_Flow":
			if wanted[other] == nil {
				wanted[other] = map[logicalKey][]*differing{}
			}
			k := keyOf(x.rule.Stage, x.rule.Priority, x.rule.Match, x.rule.Actions)
			wanted[other][k] = append(wanted[other][k], x)
		}
	}
	for sb, keys := range wanted {
		if err := findLogical(sb, keys); err != nil {
			return err
		}
	}
	return nil
}

// sameRow reports whether a row has the same content in two southbound databases.
func sameRow(a, b *file.Index, rule rules.Rule) bool {
	x, _, errX := a.Row(rule.Row, rule.UUID)
	y, _, errY := b.Row(rule.Row, rule.UUID)
	if errX != nil || errY != nil {
		return false
	}
	for _, column := range a.Columns(rule.Row) {
		if !slices.Equal((ovsdb.Names{}).Elements(x, column.Name), (ovsdb.Names{}).Elements(y, column.Name)) {
			return false
		}
	}
	return true
}

// findLogical marks the flows whose logical flows a database has, with another UUID. It
// parses only logical flows with a wanted priority.
func findLogical(sb *file.Index, keys map[logicalKey][]*differing) error {
	priorities := map[string]bool{}
	for k := range keys {
		priorities[k.priority] = true
	}
	accept := func(text []byte) bool {
		_, rest, found := bytes.Cut(text, []byte(`"priority":`))
		end := bytes.IndexAny(rest, ",}")
		return !found || end < 0 || priorities[strings.TrimSpace(string(rest[:end]))]
	}
	for row, err := range sb.Matching("Logical_Flow", accept) {
		if err != nil {
			return err
		}
		priority, _ := row.Int("priority")
		for _, x := range keys[keyOf(row.Map("external_ids")["stage-name"], priority, row.String("match"), row.String("actions"))] {
			x.kept = x.kept || x.other.node.zone.rules.Has(row, x.rule.Datapath.Name)
		}
	}
	return nil
}
