// Package rules names the flows of OVN's integration bridge: the logical flow or the
// southbound row that a cookie stands for, its stage, the northbound row that it was made
// from, and the words in which the user knows that: a NetworkPolicy, a security group, a
// route, a floating IP, a service. It also gives the reason for a drop.
package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// Rules are the rules of one OVN control plane. Its methods may be called concurrently. Its
// memory does not grow with the number of questions.
type Rules struct {
	nb, sb *file.Index // nb may be nil

	datapaths func() datapaths
	groups    func() map[string]portGroup // by the UUIDs of their ACLs
	snats     func() map[string]int       // by external addresses

	ports func() map[portKey]Port
	named func() map[string]Port // the ports by their names in OVN
	// members are the names of the ports of each port group.
	members     func() map[string]map[string]bool
	addressSets func() map[string][]string

	mu    sync.Mutex
	cache map[Flow]Rule
}

// New returns the rules in a southbound and a northbound database. nb may be nil: then
// rules have no causes.
func New(nb, sb *file.Index) *Rules {
	r := &Rules{nb: nb, sb: sb, cache: map[Flow]Rule{}}
	r.datapaths = sync.OnceValue(r.readDatapaths)
	r.groups = sync.OnceValue(r.readPortGroups)
	r.snats = sync.OnceValue(r.readSNATs)
	r.ports = sync.OnceValue(r.readPorts)
	r.named = sync.OnceValue(r.readNamed)
	r.members = sync.OnceValue(r.readMembers)
	r.addressSets = sync.OnceValue(r.readAddressSets)
	return r
}

// Flow identifies a flow of the integration bridge.
type Flow struct {
	Cookie   uint64
	Table    int
	Priority int
	Metadata uint64 // the tunnel key of its datapath, 0 if the flow does not match on it
	Layout   Layout // of the node that the flow is on
}

// ParseFlow reads a flow as ovs-ofctl dump-flows prints it, without its layout.
func ParseFlow(text string) (Flow, error) {
	f := Flow{Priority: 32768} // what ovs-ofctl leaves out
	match, _, _ := strings.Cut(text, "actions=")
	for field := range strings.FieldsFuncSeq(match, func(c rune) bool { return c == ',' || c == ' ' }) {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "cookie":
			f.Cookie, err = strconv.ParseUint(value, 0, 64)
		case "table":
			f.Table, err = strconv.Atoi(value)
		case "priority":
			f.Priority, err = strconv.Atoi(value)
		case "metadata":
			f.Metadata, err = strconv.ParseUint(value, 0, 64)
		}
		if err != nil {
			return f, fmt.Errorf("flow with %s: %w", field, err)
		}
	}
	return f, nil
}

// Rule is what a flow was made from.
type Rule struct {
	// Row is the table of the southbound database, and UUID the row, that the cookie stands
	// for; "" for a flow that OVN makes from no row.
	Row, UUID string
	// Pipeline, Stage, Table, Priority, Match, Actions and Location (in the source of
	// ovn-northd) are those of a logical flow. Of another flow, Stage says what its table
	// is for.
	Pipeline, Stage          string
	Table, Priority          int
	Match, Actions, Location string
	Datapath                 Datapath
	Cause                    Cause
	// Words names the rule as its user knows it, or else as OVN does.
	Words string
	// Candidates is the number of rows that the flow may be made from, if there is more
	// than one: no field tells them apart, and the rule is the first of them.
	Candidates int
	// Foreign reports that ovn-controller did not write the flow.
	Foreign bool
}

// Datapath is a logical switch or router.
type Datapath struct {
	Name   string // in OVN
	Given  string // by a user, "" for none
	Router bool
	Key    uint64 // the tunnel key
}

// String returns "switch NAME" or "router NAME", with the name that a user gave.
func (d Datapath) String() string {
	kind := "switch"
	if d.Router {
		kind = "router"
	}
	if d.Given != "" {
		return kind + " " + d.Given
	}
	return kind + " " + d.Name
}

// Cause is the northbound row that a logical flow was made from.
type Cause struct {
	Table, UUID string
	Name        string // of an ACL, a load balancer or a port
	Action      string // of an ACL or a policy
	Direction   string // of an ACL: to-lport or from-lport
	Match       string // of an ACL
	Group       string // the port group of an ACL, "" for none
	Words       string
}

// sourceTables are the tables of the southbound database whose UUIDs ovn-controller writes
// into cookies (controller/physical.c and controller/lflow.c of OVN).
func sourceTables() []string {
	return []string{logicalFlow, "Port_Binding", "Multicast_Group", "MAC_Binding", "Static_MAC_Binding", "Load_Balancer",
		"Chassis_Template_Var", "Chassis", "FDB", "Datapath_Binding", "ECMP_Nexthop"}
}

const logicalFlow = "Logical_Flow"

// Find returns the rule of a flow of the integration bridge; ok is false if no row has its
// cookie.
func (r *Rules) Find(f Flow) (rule Rule, ok bool, err error) {
	if f.Cookie == 0 {
		name := f.Layout.physical(f.Table)
		return Rule{Stage: name, Words: name, Datapath: r.Datapath(f.Metadata)}, true, nil
	}
	r.mu.Lock()
	rule, cached := r.cache[f]
	r.mu.Unlock()
	if cached {
		return rule, rule.Row != "", nil
	}
	if rule, err = r.find(f); err != nil {
		return Rule{}, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cache) >= maxCached {
		clear(r.cache)
	}
	r.cache[f] = rule
	return rule, rule.Row != "", nil
}

// maxCached bounds the rules that are kept in memory.
const maxCached = 1 << 15

func (r *Rules) find(f Flow) (Rule, error) {
	if f.Cookie > 0xffffffff {
		return Rule{}, nil
	}
	var found []Rule
	for _, table := range sourceTables() {
		for _, uuid := range r.sb.Begins(table, uint32(f.Cookie)) {
			rule, fits, err := r.candidate(table, uuid, f)
			if err != nil {
				return Rule{}, err
			}
			if fits {
				found = append(found, rule)
			}
		}
	}
	// Outside of the pipelines, flows are of other rows. Few are of logical flows: those
	// that the actions of a logical flow have learned.
	isLogical := func(rule Rule) bool { return rule.Row == logicalFlow }
	if slices.ContainsFunc(found, func(rule Rule) bool { return !isLogical(rule) }) {
		found = slices.DeleteFunc(found, isLogical)
	}
	if len(found) == 0 {
		return Rule{}, nil
	}
	rule := found[0]
	if len(found) > 1 {
		rule.Candidates = len(found)
	}
	return rule, nil
}

// candidate returns the rule of a row with the flow's cookie. fits is false if the flow
// can't be made from it.
func (r *Rules) candidate(table, uuid string, f Flow) (rule Rule, fits bool, err error) {
	row, ok, err := r.sb.Row(table, uuid)
	if err != nil || !ok {
		return Rule{}, false, err
	}
	if table == logicalFlow {
		return r.logicalFlow(row, f)
	}
	// Rows other than logical flows have no flows in the tables of the pipelines.
	if pipeline, _ := f.Layout.logical(f.Table); pipeline != "" {
		return Rule{}, false, nil
	}
	rule = Rule{Row: table, UUID: uuid, Stage: f.Layout.physical(f.Table), Datapath: r.datapathOf(row, f)}
	rule.Words = r.describe(table, row, rule.Datapath)
	return rule, true, nil
}

// LogicalFlow returns the rule that is a row of Logical_Flow. It has a datapath if the
// logical flow is for only one.
func (r *Rules) LogicalFlow(row ovsdb.Row) (Rule, error) {
	rule, _, err := r.logicalFlow(row, Flow{})
	return rule, err
}

// logicalFlow returns the rule of a logical flow if its table, its priority and its
// datapaths are those of the flow.
func (r *Rules) logicalFlow(row ovsdb.Row, f Flow) (Rule, bool, error) {
	ids := row.Map("external_ids")
	rule := Rule{Row: logicalFlow, UUID: row.UUID, Pipeline: row.String("pipeline"), Stage: ids["stage-name"],
		Match: row.String("match"), Actions: row.String("actions"), Location: ids["source"]}
	rule.Table, _ = row.Int("table_id")
	rule.Priority, _ = row.Int("priority")
	if pipeline, table := f.Layout.logical(f.Table); pipeline != "" && (pipeline != rule.Pipeline || table != rule.Table || f.Priority != rule.Priority) {
		return Rule{}, false, nil
	}
	var member bool
	if rule.Datapath, member = r.datapathOfFlow(row, f.Metadata); !member {
		return Rule{}, false, nil
	}
	var err error
	if rule.Cause, err = r.cause(ids["stage-hint"], rule); err != nil {
		return Rule{}, false, err
	}
	rule.Words = rule.words()
	return rule, true, nil
}

// words names a logical flow by its cause, or else as OVN does.
func (r Rule) words() string {
	switch {
	case r.Cause.Table == "Load_Balancer" && strings.Contains(r.Actions, "reject {"):
		return r.Cause.Words + ", which has no backends"
	case r.Cause.Words != "":
		return r.Cause.Words
	case strings.Contains(r.Stage, "_acl") && strings.HasPrefix(r.Match, "ct.inv"):
		return fmt.Sprintf("connections that conntrack finds invalid, or that an ACL no longer allows (%s, priority %d)", r.Stage, r.Priority)
	}
	return fmt.Sprintf("logical flow of stage %s, priority %d", r.Stage, r.Priority)
}

// datapathOfFlow returns the datapath of a logical flow that has a tunnel key, or the only
// one it has if the key is 0. member is false if none has the key.
func (r *Rules) datapathOfFlow(row ovsdb.Row, key uint64) (d Datapath, member bool) {
	all, ids := r.datapaths().byUUID, r.datapathsOfFlow(row)
	for _, id := range ids {
		if all[id].Key == key {
			return all[id], true
		}
	}
	if key != 0 {
		return Datapath{}, false
	}
	if len(ids) == 1 {
		return all[ids[0]], true
	}
	return Datapath{}, true
}

// Has reports whether a logical flow is one of the datapath with a name.
func (r *Rules) Has(row ovsdb.Row, datapath string) bool {
	return slices.ContainsFunc(r.datapathsOfFlow(row), func(id string) bool { return r.datapaths().byUUID[id].Name == datapath })
}

// datapathsOfFlow returns the UUIDs of the datapaths of a logical flow.
func (r *Rules) datapathsOfFlow(row ovsdb.Row) []string {
	ids := row.UUIDs("logical_datapath")
	for _, group := range row.UUIDs("logical_dp_group") {
		if g, ok, err := r.sb.Row("Logical_DP_Group", group, "datapaths"); ok && err == nil {
			ids = append(ids, g.UUIDs("datapaths")...)
		}
	}
	return ids
}

// datapathOf returns the datapath of a row that has one, or else the flow's.
func (r *Rules) datapathOf(row ovsdb.Row, f Flow) Datapath {
	for _, id := range row.UUIDs("datapath") {
		return r.datapaths().byUUID[id]
	}
	return r.Datapath(f.Metadata)
}

// Datapath returns the datapath with a tunnel key.
func (r *Rules) Datapath(key uint64) Datapath {
	if d, ok := r.datapaths().byKey[key]; ok {
		return d
	}
	return Datapath{Key: key}
}

// datapaths are all datapaths, by the UUIDs of their rows and by their tunnel keys.
type datapaths struct {
	byUUID map[string]Datapath
	byKey  map[uint64]Datapath
}

func (r *Rules) readDatapaths() datapaths {
	all := datapaths{map[string]Datapath{}, map[uint64]Datapath{}}
	for row, err := range r.sb.Rows("Datapath_Binding", "tunnel_key", "external_ids", "type") {
		if err != nil {
			break // the rows that can't be read have no names
		}
		ids := row.Map("external_ids")
		key, _ := row.Int("tunnel_key")
		d := Datapath{Name: ids["name"], Given: ids["name2"], Key: uint64(key),
			Router: ids["logical-router"] != "" || row.String("type") == "logical-router"}
		all.byUUID[row.UUID], all.byKey[d.Key] = d, d
	}
	return all
}

// portKey identifies a port by the tunnel keys of its datapath and of itself.
type portKey struct{ datapath, port uint64 }

// cause returns the northbound row whose UUID begins with the stage hint of a logical flow.
func (r *Rules) cause(hint string, rule Rule) (Cause, error) {
	bits, err := strconv.ParseUint(hint, 16, 32)
	if hint == "" || err != nil || r.nb == nil {
		return Cause{}, nil
	}
	var found []Cause
	for _, table := range hintTables(rule.Stage) {
		for _, uuid := range r.nb.Begins(table, uint32(bits)) {
			row, ok, err := r.nb.Row(table, uuid)
			if err != nil {
				return Cause{}, err
			}
			if ok {
				found = append(found, r.explain(table, row, rule))
			}
		}
	}
	if len(found) == 0 {
		return Cause{}, nil
	}
	return found[0], nil
}

// hintTables lists the tables whose rows ovn-northd gives as hints (northd/northd.c), those
// that a stage is about first.
func hintTables(stage string) []string {
	tables := []string{"ACL", "NAT", "Load_Balancer", "Logical_Router_Static_Route", "Logical_Router_Policy", "QoS", "Logical_Switch_Port",
		"Logical_Router_Port", "DHCP_Options", "Forwarding_Group", "Static_MAC_Binding", "DNS", "Logical_Switch", "Logical_Router", "Mirror"}
	first := ""
	switch {
	case strings.Contains(stage, "_policy"):
		first = "Logical_Router_Policy"
	case strings.Contains(stage, "_routing"):
		first = "Logical_Router_Static_Route"
	case strings.Contains(stage, "_qos"):
		first = "QoS"
	case strings.Contains(stage, "_lb"):
		first = "Load_Balancer"
	case strings.Contains(stage, "nat"):
		first = "NAT"
	}
	if at := slices.Index(tables, first); at > 0 {
		tables = slices.Insert(slices.Delete(tables, at, at+1), 0, first)
	}
	return tables
}
