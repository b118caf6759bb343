package compare

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
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
	flow  openflow.Flow // the flow after the change, or else before it
	side  *bridgeFlows  // that has the flow
	other *bridgeFlows
	rule  rules.Rule
	known bool   // rule is known
	kept  bool   // both sides have the row that the flow was made from
	text  string // in names
	// made are the rules that the flow was made from: of a clause of conjunctions, the rules of
	// the flow before the change too.
	made []madeFrom
}

// madeFrom is a rule that a flow was made from, and the side that has the flow.
type madeFrom struct {
	rules.Rule
	side *bridgeFlows
}

// explain adds each difference to the finding that it follows from, or lists it.
func (e *explainer) explain(ctx context.Context, all []flowDifference) error {
	list := make([]differing, 0, len(all))
	for _, pair := range all {
		difference := differing{flowDifference: pair, side: e.new, other: e.old}
		if pair.new == nil {
			difference.side, difference.other = e.old, e.new
			difference.flow = *pair.old
		} else {
			difference.flow = *pair.new
		}
		var err error
		if difference.rule, difference.known, err = difference.side.rule(difference.flow); err != nil {
			return err
		}
		if pair.old != nil && pair.new != nil && difference.rule.Row == "" { // whoever changed it did not keep the cookie
			if difference.rule, difference.known, err = e.old.rule(*pair.old); err != nil {
				return err
			}
			difference.side, difference.other, difference.flow = e.old, e.new, *pair.old
		}
		if err := e.findRules(&difference); err != nil {
			return err
		}
		match, actions := difference.side.inNames(difference.flow)
		difference.text = match + " actions=" + actions
		list = append(list, difference)
	}
	if err := e.findKept(list); err != nil {
		return err
	}
	links := e.links()
	for i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		difference := &list[i]
		if f := e.causeOf(difference, links); f != nil {
			f.countFlow(difference)
			continue
		}
		e.listFlow(difference)
	}
	return nil
}

// findRules sets the rules that a flow was made from.
func (e *explainer) findRules(difference *differing) error {
	if difference.known {
		difference.made = []madeFrom{{difference.rule, difference.side}}
	}
	for _, at := range []struct {
		flow *openflow.Flow
		side *bridgeFlows
	}{{difference.new, e.new}, {difference.old, e.old}} {
		if at.flow == nil || !openflow.IsClause(at.flow.Actions()) {
			continue
		}
		all, err := at.side.rules(*at.flow)
		if err != nil {
			return err
		}
		for _, rule := range all {
			difference.made = append(difference.made, madeFrom{rule, at.side})
		}
	}
	return nil
}

func (f *finding) countFlow(difference *differing) {
	switch {
	case difference.old == nil:
		f.Flows.Added++
	case difference.new == nil:
		f.Flows.Gone++
	default:
		f.Flows.Changed++
	}
}

// listFlow adds a finding for a flow that follows from nothing else.
func (e *explainer) listFlow(difference *differing) {
	listed := Finding{Kind: "flow", Node: e.pair.new.name, Name: fmt.Sprintf("flow of %s, %s", e.bridge, difference.rule.Stage), Change: Changed}
	if difference.known && difference.rule.Row != "" && difference.rule.Words != "" {
		listed.Name += ": " + difference.rule.Words
	} else if stage, words, ok := difference.side.gateway(difference.flow); ok {
		listed.Name = fmt.Sprintf("flow of %s, %s: %s", e.bridge, stage, words)
	}
	match, actions := "", ""
	switch {
	case difference.old == nil:
		listed.Change = Added
		match, actions = e.new.inNames(*difference.new)
		listed.Columns = []Column{{Name: "actions", New: actions}}
	case difference.new == nil:
		listed.Change = Gone
		match, actions = e.old.inNames(*difference.old)
		listed.Columns = []Column{{Name: "actions", Old: actions}}
	default:
		_, before := e.old.inNames(*difference.old)
		match, actions = e.new.inNames(*difference.new)
		listed.Columns = []Column{{Name: "actions", Old: before, New: actions}}
	}
	listed.Match = match
	e.found = append(e.found, &finding{Finding: listed})
}

// links are the findings of an OVN deployment, by the rows, names and datapaths that lead to them.
type links struct {
	rows     map[string]*finding        // by the UUID of a row
	names    map[string]*finding        // by a name in the match of a logical flow
	members  map[string]*finding        // by the name of a port group whose addresses differ because a port does
	on       map[string][]*finding      // by the name of a datapath that they touch
	near     map[string]map[string]bool // the datapaths that are joined with a datapath
	anywhere []*finding                 // findings that can change any flow
}

// causeOf returns the finding that explains why a flow differs, nil if there is none.
func (e *explainer) causeOf(difference *differing, links *links) *finding {
	if f := e.directCause(difference, links); f != nil {
		return f
	}
	if f := e.mentionedCause(difference, links); f != nil {
		return f
	}
	if !difference.known || e.zone == nil {
		return nil
	}
	datapath := difference.rule.Datapath.Name
	moved := datapath != "" && e.old.local[datapath] != e.new.local[datapath]
	switch {
	case !difference.kept || moved:
	case difference.rule.Row == "Logical_Flow":
		return nil
	case difference.rule.Row == "Multicast_Group": // its members are elsewhere
		for _, f := range links.on[datapath] {
			if f.movesAddresses() && (f.Kind == rules.KindPort || f.Kind == rules.KindRouterPort) {
				return f
			}
		}
		return nil
	default:
		return e.ovnSettings(e.pair.new.name)
	}
	return links.nearest(datapath, difference.rule.Stage)
}

// directCause returns the finding about a row that a flow was made from.
func (e *explainer) directCause(difference *differing, links *links) *finding {
	if e.zone == nil {
		return nil
	}
	for _, made := range difference.made {
		if f := links.ofRule(made); f != nil {
			return f
		}
	}
	return nil
}

// ofRule returns the finding about the row of a rule.
func (l *links) ofRule(made madeFrom) *finding {
	if f := l.rows[made.Cause.UUID]; f != nil {
		return f
	}
	row, ok, err := made.side.zone.SB.Row(made.Row, made.UUID)
	if err != nil || !ok {
		return nil
	}
	switch made.Row {
	case "Port_Binding":
		return l.names[strings.TrimPrefix(row.String("logical_port"), "cr-")]
	case "Load_Balancer":
		return l.rows[row.Map("external_ids")["lb_id"]]
	}
	return l.rows[made.UUID]
}

// mention matches the names of ports, address sets and port groups in a logical flow, and
// of ports in a flow in names.
var mention = lazyregexp.New(`"([^"]+)"|[$@]([A-Za-z_.:0-9-]+)`)

// mentions returns the names in a text.
func mentions(text string) []string {
	var names []string
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}

// mentionedCause returns the finding about a name in a flow, or in a logical flow that it was made
// from.
func (e *explainer) mentionedCause(difference *differing, links *links) *finding {
	logical := ""
	for _, made := range difference.made {
		logical += made.Match + " " + made.Actions + " "
	}
	for _, place := range []struct {
		text  string
		names map[string]*finding
	}{{logical, links.names}, {logical, links.members}, {difference.text, links.names}} {
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
			if port.node == e.pair.new.name && hasPort(difference.text, port.name) {
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

// nearest returns a finding that touches a datapath, or else the datapaths joined with it, and so
// on; of several, one of a kind that the stage is about.
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

// best returns a finding of a kind that the stage is about, or else one about a port.
func best(candidates []*finding, stage string) *finding {
	var kinds []string
	for _, table := range rules.TablesOf(stage) {
		kinds = append(kinds, rules.Kind(table))
	}
	if f := pick(candidates, append(kinds, rules.KindPort, rules.KindRouterPort, rules.KindSwitch, rules.KindRouter)...); f != nil {
		return f
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
	all := &links{rows: map[string]*finding{}, names: map[string]*finding{}, members: map[string]*finding{}, on: map[string][]*finding{}, near: map[string]map[string]bool{}}
	if e.zone == nil || e.zone.nb == nil {
		return all
	}
	if e.zone.links != nil {
		return e.zone.links
	}
	e.zone.links = all
	of := map[*object]*finding{}
	for _, f := range e.folded {
		for _, o := range []*object{f.pair.old, f.pair.new} {
			if o != nil {
				of[o] = f.folded
			}
		}
	}
	for _, found := range e.found {
		for _, o := range []*object{found.pair.old, found.pair.new} {
			if o != nil {
				of[o] = found
			}
		}
		if found.databases == e.zone.nb && found.Kind == rules.KindSettings {
			for _, c := range found.Columns { // some are address sets: $svc_monitor_mac
				all.names[strings.TrimPrefix(c.Name, "options:")] = found
			}
		}
		if found.databases == e.zone.nb && (found.Kind == rules.KindSettings || found.Kind == rules.KindProtection || found.Kind == rules.KindMeter) || found.Kind == "chassis" {
			all.anywhere = append(all.anywhere, found)
		}
	}
	for _, w := range []*databasePair{e.zone.nb, e.zone.sb} {
		if w != nil {
			for _, db := range []*database{w.old, w.new} {
				all.addRows(w, db, of)
			}
		}
	}
	for _, db := range []*database{e.zone.nb.old, e.zone.nb.new} {
		all.addPlaces(db)
	}
	return all
}

// addRows adds the rows of the objects that differ, and their names.
func (l *links) addRows(databases *databasePair, db *database, of map[*object]*finding) {
	for uuid, object := range db.objects {
		found := of[object]
		if found == nil && databases.alone(object) {
			found = of[databases.whole(object)]
		}
		if found == nil {
			continue
		}
		l.rows[uuid] = found
		switch object.table {
		case "Logical_Switch_Port", "Logical_Router_Port", "Address_Set", "Port_Group", "Load_Balancer":
			l.names[object.row.String("name")] = found
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
		for _, datapath := range db.byTable[table] {
			name := datapath.row.String("name")
			place[datapath.row.UUID] = name
			for _, part := range datapath.parts {
				place[part.row.UUID] = name
			}
			for _, ids := range datapath.row.References() {
				for _, id := range ids {
					places[id] = append(places[id], name)
				}
			}
		}
	}
	l.join(db, place)
	for _, table := range []string{"Port_Group", "Load_Balancer_Group", "Logical_Switch_Port"} {
		for _, object := range db.byTable[table] {
			for column, ids := range object.row.References() {
				for _, id := range ids {
					switch {
					case table == "Logical_Switch_Port": // its DHCP options
						places[id] = append(places[id], place[object.row.UUID])
					case column == "ports":
						places[object.row.UUID] = append(places[object.row.UUID], place[id])
					}
				}
			}
			for column, ids := range object.row.References() {
				for _, id := range ids {
					if column != "ports" {
						places[id] = append(places[id], places[object.row.UUID]...)
					}
				}
			}
		}
	}
	for _, acl := range db.byTable["ACL"] {
		for _, name := range mentions(acl.row.String("match")) {
			if f := l.names[name]; f != nil && f.Kind == rules.KindAddressSet {
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
	add := func(from, to string) {
		if l.near[from] == nil {
			l.near[from] = map[string]bool{}
		}
		l.near[from][to] = true
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

// logicalKey identifies a logical flow in another database.
type logicalKey struct{ stage, priority, match, actions string }

func keyOf(stage string, priority int, match, actions string) logicalKey {
	return logicalKey{stage, strconv.Itoa(priority), match, actions}
}

// findKept sets kept for the flows that were made from a row that both sides have.
func (e *explainer) findKept(list []differing) error {
	wanted := map[*file.Index]map[logicalKey][]*differing{}
	for i := range list {
		difference := &list[i]
		if !difference.known || e.zone == nil || e.zone.sb == nil || difference.rule.Row == "" {
			continue
		}
		other := difference.other.node.zone.SB
		switch {
		case hasRow(other, difference.rule.Row, difference.rule.UUID):
			difference.kept = difference.rule.Row == "Logical_Flow" || sameRow(difference.side.node.zone.SB, other, difference.rule)
		case difference.rule.Row == "Logical_Flow":
			if wanted[other] == nil {
				wanted[other] = map[logicalKey][]*differing{}
			}
			k := keyOf(difference.rule.Stage, difference.rule.Priority, difference.rule.Match, difference.rule.Actions)
			wanted[other][k] = append(wanted[other][k], difference)
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
func sameRow(sb, other *file.Index, rule rules.Rule) bool {
	row, _, err := sb.Row(rule.Row, rule.UUID)
	otherRow, _, failed := other.Row(rule.Row, rule.UUID)
	if err != nil || failed != nil {
		return false
	}
	for _, column := range sb.Columns(rule.Row) {
		if !slices.Equal((ovsdb.Names{}).Elements(row, column.Name), (ovsdb.Names{}).Elements(otherRow, column.Name)) {
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
