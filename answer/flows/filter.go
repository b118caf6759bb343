package flows

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot/rules"
)

// Filter selects flows. Its zero value selects all.
type Filter struct {
	Table    string   // a number, or the name of a stage
	Match    []string // each a field with or without its value, or else a part of the match
	Cookie   string   // a number, with a mask if wanted
	Port     string   // a logical port, or an interface
	Switch   string   // a logical switch
	Router   string   // a logical router
	Policy   string   // a part of what the flow is for
	ACL      string   // a part of what the flow is for, if that is an ACL
	Hit      bool
	NeverHit bool

	cookie, mask uint64
}

// prepare checks the filter.
func (f *Filter) prepare() error {
	if f.Hit && f.NeverHit {
		return errors.New("a flow is either hit or never hit: ask for one of them")
	}
	f.Match = slices.Clone(f.Match)
	for i, term := range f.Match {
		if strings.Contains(term, "=") && !strings.ContainsAny(term, " \t") {
			f.Match[i] = (&openflow.Canonical{}).Match(term)
		}
	}
	f.mask = 0
	if f.Cookie == "" {
		return nil
	}
	value, mask, masked := strings.Cut(f.Cookie, "/")
	var err error
	if f.cookie, err = strconv.ParseUint(value, 0, 64); err == nil {
		f.mask = ^uint64(0)
		if masked {
			f.mask, err = strconv.ParseUint(mask, 0, 64)
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not a cookie: give a number, such as 0x774cbb2b or 0x77000000/0xff000000", f.Cookie)
	}
	return nil
}

// mayAccept reports whether the filter may select the flow of a line of a dump. It costs a
// tenth of what reading the flow costs. A line that may be damaged is accepted.
func (f *Filter) mayAccept(line string) bool {
	if !strings.Contains(line, "n_packets=") || !strings.Contains(line, "actions=") {
		return true
	}
	if f.Hit && strings.Contains(line, "n_packets=0,") {
		return false
	}
	for _, term := range f.Match {
		// The names of ports are not in the line.
		if strings.Contains(term, "=") && !strings.HasPrefix(term, "in_port=") && !strings.Contains(line, term) {
			return false
		}
	}
	return true
}

// accepts reports whether the filter selects a flow. The cheapest conditions come first.
func (f *Filter) accepts(node *Node, bridge *Bridge, flow *record) (bool, error) {
	if f.Hit && flow.Packets == 0 || f.NeverHit && !flow.neverHit() || (flow.Cookie^f.cookie)&f.mask != 0 {
		return false, nil
	}
	if !f.ofDatapath(node, bridge, flow) || f.Port != "" && !f.ofPort(node, bridge, flow) || !f.matches(node, bridge, flow) {
		return false, nil
	}
	if f.Table != "" && f.Table != strconv.Itoa(flow.Table) {
		stage, err := node.stage(bridge, flow)
		if err != nil || stage != f.Table {
			return false, err
		}
	}
	if f.Policy == "" && f.ACL == "" {
		return true, nil
	}
	rule, _, err := node.rule(bridge, flow)
	return contains(rule.Words, f.Policy) && (f.ACL == "" || rule.Cause.Table == "ACL" && contains(rule.Words, f.ACL)), err
}

// neverHit reports whether a flow matched no packet. Of a clause this is not known.
func (r *record) neverHit() bool { return r.Counted && r.Packets == 0 && !r.isClause() }

// contains reports whether a text contains a part, in any case.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func (f *Filter) ofDatapath(node *Node, bridge *Bridge, flow *record) bool {
	if f.Switch == "" && f.Router == "" {
		return true
	}
	d := node.datapath(bridge, flow)
	is := func(name string) bool { return name == d.Name || name == d.Given }
	return d.Name != "" && (f.Switch != "" && !d.Router && is(f.Switch) || f.Router != "" && d.Router && is(f.Router))
}

// ofPort reports whether a flow matches the port: a logical one by any of its names, or an
// interface or its logical port.
func (f *Filter) ofPort(node *Node, bridge *Bridge, flow *record) bool {
	logical := bridge.alias[f.Port]
	is := func(p *rules.Port) bool {
		return p != nil && (p.Name == f.Port || p.Given == f.Port || logical != "" && p.Name == logical)
	}
	if in, out := node.logicalPorts(bridge, flow); is(in) || is(out) {
		return true
	}
	inPort, ok := flow.Field("in_port")
	if !ok {
		return false
	}
	p := bridge.port(inPort)
	if p.logical == "" {
		return p.name == f.Port
	}
	attached := node.logicalPort(p.logical)
	return p.name == f.Port || is(&attached)
}

// matches reports whether a flow has all terms of Match.
func (f *Filter) matches(node *Node, bridge *Bridge, flow *record) bool {
	if len(f.Match) == 0 {
		return true
	}
	var named Flow
	node.nameMatch(bridge, flow, &named)
	where := named.Where()
	fields := slices.AppendSeq(slices.Collect(openflow.Tokens(flow.Match)), openflow.Tokens(named.Match))
	for _, term := range f.Match {
		isField := slices.ContainsFunc(fields, func(field string) bool {
			name, _, _ := strings.Cut(field, "=")
			return field == term || name == term
		})
		if !isField && (strings.Contains(term, "=") || !contains(where, term)) {
			return false
		}
	}
	return true
}
