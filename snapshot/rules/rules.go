// Package rules names the flows of OVN's integration bridge: the logical flow or the
// southbound row that a cookie stands for, its stage, the northbound row that it was made
// from, and the words in which the user knows that: a NetworkPolicy, a security group, a
// route, a floating IP, a service. It also gives the reason for a drop.
package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Rules are the rules of one OVN control plane. Its methods may be called concurrently. Its
// memory does not grow with the number of questions.
type Rules struct {
	*Network
	*Northbound

	mu     sync.Mutex
	cache  map[Flow]Rule
	stages stageFlows

	reading sync.Mutex    // of the logs of the databases
	deleted map[Flow]Rule // by the flows that were asked for
}

// New returns the rules in a southbound and a northbound database. nb may be nil: then
// rules have no causes.
func New(nb, sb *file.Index) *Rules {
	north := newNorthbound(nb)
	return &Rules{Network: newNetwork(sb, north.called), Northbound: north, cache: map[Flow]Rule{}, deleted: map[Flow]Rule{}}
}

// Flow is what the rule of a flow of the integration bridge depends on.
type Flow struct {
	Cookie   uint64
	Table    int
	Priority int
	Metadata uint64 // the tunnel key of its datapath, 0 if the flow does not match on it
	Layout   Layout // of the node that the flow is on
}

// FlowOf returns the flow with a key on a node with a layout.
func FlowOf(k openflow.Key, l Layout) Flow {
	return Flow{k.Cookie, k.Table, k.Priority, k.Number("metadata"), l}
}

// Rule is what a flow was made from.
type Rule struct {
	// Row is the table of the southbound database, and UUID the row, that the cookie stands
	// for; "" for a flow that OVN makes from no row.
	Row, UUID string
	// Pipeline, Stage, Table, Priority, Match, Actions and Location (in the source of
	// ovn-northd) describe a logical flow. For another flow, Stage names its table.
	Pipeline, Stage          string
	Table, Priority          int
	Match, Actions, Location string
	Datapath                 ovn.Datapath
	Cause                    Cause
	// Words names the rule as its user knows it, or else as OVN does.
	Words string
	// Candidates is the number of rows that the flow may be made from, if there is more
	// than one: no field tells them apart, and the rule is the first of them.
	Candidates int
	// Foreign reports that ovn-controller did not write the flow.
	Foreign bool
	// Stale reports that the southbound database no longer has the row that the flow was made from. Row is "" if nothing is
	// known of it.
	Stale bool
}

// Cause is the northbound row that a logical flow was made from.
type Cause struct {
	Table, UUID string
	Name        string // of an ACL, a load balancer or a port
	Action      string // of an ACL or a policy
	Direction   string // of an ACL: to-lport or from-lport
	Match       string // of an ACL
	Priority    int    // of an ACL
	Group       string // the port group of an ACL, "" for none
	Words       string
	// Shared is set for a logical flow that serves several rows: the cause is any one of them, and Words names what they share.
	Shared bool
}

// sourceTables are the tables of the southbound database whose UUIDs ovn-controller writes
// into cookies (controller/physical.c and controller/lflow.c of OVN).
func sourceTables() []string {
	return []string{logicalFlow, "Port_Binding", "Multicast_Group", "MAC_Binding", "Static_MAC_Binding", "Load_Balancer",
		"Chassis_Template_Var", "Chassis", "FDB", "Datapath_Binding", "ECMP_Nexthop"}
}

const logicalFlow = ovn.LogicalFlowTable

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

// candidate returns the rule of a row with the flow's cookie. fits is false if the flow can't be
// generated from the row.
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

// LogicalFlow describes a row of Logical_Flow. Datapath is set only if the row applies to exactly
// one datapath.
func (r *Rules) LogicalFlow(row ovsdb.Row) (Rule, error) {
	rule, _, err := r.logicalFlow(row, Flow{})
	return rule, err
}

// logicalFlow describes a row of Logical_Flow. It returns false if the table, the priority or the
// datapath of the flow is not one of the row's.
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
	case r.Cause.Table == "Load_Balancer" && strings.TrimSpace(r.Actions) == "drop;": // or none that answers the checks of their health
		return r.Cause.Words + ", which has no working backends"
	case r.Cause.Words != "":
		return r.Cause.Words
	case IsAbout(r.Stage, "ACL") && strings.HasPrefix(r.Match, "ct.inv"):
		return fmt.Sprintf("connections that conntrack finds invalid, or that an ACL no longer allows (%s, priority %d)", r.Stage, r.Priority)
	}
	return fmt.Sprintf("logical flow of stage %s, priority %d", r.Stage, r.Priority)
}
