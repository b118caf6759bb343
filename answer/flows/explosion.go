package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/workdir"
)

// Explosion is many recorded flows of the datapath that differ only in fields that few rules should look
// at: each connection, or each packet, has a flow of its own, and its first packet is an upcall.
type Explosion struct {
	Node  string `json:"node,omitempty"`
	Flows int    `json:"flows"`
	Of    int    `json:"of"` // all recorded flows of the datapath
	// Fields are the fields that make many flows of few, and Left the number of flows that were left without
	// them, about.
	Fields  []string `json:"fields"`
	Left    int      `json:"left"`
	Values  []int    `json:"values"` // different values of each field, about
	Mask    string   `json:"mask"`   // all fields that the flows match
	Packets uint64   `json:"packets"`
	Example string   `json:"example"` // the flow with the most packets
	// Rules are the rules for which ovs-vswitchd looks at the fields. If Traced is set, a trace of the
	// example on the running replica showed them; else they are flows that match the fields.
	Rules  []Examiner `json:"rules"`
	Traced bool       `json:"traced"`
	Why    string     `json:"why,omitempty"` // it is not traced
}

// The thresholds of an explosion: a group has at least leastFlows flows, fields that split them have at least
// leastValues values, and without these fields at most one of leastFactor flows would be left.
const (
	leastFlows  = 100
	leastFactor = 10
	leastValues = 50
)

// mostExplosions bounds the explosions of a node.
const mostExplosions = 8

// Explosions finds explosions among the recorded flows of the datapath of a node, and names the rules that
// cause them: by the running replica, if there is one.
func Explosions(ctx context.Context, source Source, survey *Survey) ([]Explosion, error) {
	var found []Explosion
	var samples []appctl.Megaflow
	for _, g := range survey.Groups {
		fields, left := g.split()
		if len(fields) == 0 || len(found) == mostExplosions {
			continue
		}
		e := Explosion{Node: source.Name, Flows: g.Flows, Of: survey.Flows, Left: left, Mask: g.Mask, Packets: g.Packets, Example: g.Sample.Key, Rules: []Examiner{}}
		for _, f := range fields {
			e.Fields, e.Values = append(e.Fields, f.Name), append(e.Values, f.Values)
		}
		found, samples = append(found, e), append(samples, g.Sample)
	}
	if len(found) == 0 {
		return nil, nil
	}
	if err := traceExplosions(ctx, source, found, samples); err != nil {
		return nil, err
	}
	return found, nameCandidates(ctx, source, found, survey)
}

// split returns the fields that make many flows of few, and how many flows were left without them. The
// addresses alone are none: routers and port security look at them in every deployment, so that each pair
// of hosts has a flow.
func (g *Group) split() (fields []Field, left int) {
	if g.Flows < leastFlows {
		return nil, 0
	}
	left = g.Flows
	for _, f := range g.Fields {
		if f.mayExplode() && f.Values >= leastValues && f.Merged*leastFactor <= g.Flows {
			fields, left = append(fields, f), min(left, f.Merged)
		}
	}
	if len(fields) > 0 {
		return fields, left
	}
	ports := slices.ContainsFunc(g.Fields, func(f Field) bool {
		return f.Name == "tp_src" && f.Values >= max(leastFlows, g.Flows/leastFactor)
	})
	if !ports || g.Tuple*leastFactor > g.Flows {
		return nil, 0
	}
	for _, f := range g.Fields {
		if isTuple(f.Name) && f.Values > 1 {
			fields = append(fields, f)
		}
	}
	return fields, g.Tuple
}

// mayExplode reports whether many values of a field are unusual: it is no address, port of the switch or
// number of a datapath.
func (f Field) mayExplode() bool {
	switch f.Name {
	case "tp_src", "tp_dst", "icmp_type", "icmp_code", "nw_ttl", "nw_tos", "nw_ecn", "ipv6_label", "tcp_flags", "nd_sll", "nd_tll", "ct_tp_src", "ct_tp_dst",
		"pkt_mark", "skb_priority", "ct_mark", "ct_label", "dl_vlan_pcp":
		return true
	}
	return false
}

// traceExplosions asks the running replica for the way of the example of each explosion.
func traceExplosions(ctx context.Context, source Source, found []Explosion, samples []appctl.Megaflow) error {
	list, err := withAncestors(ctx, source.Dir, samples)
	if err != nil {
		return err
	}
	err = replayList(ctx, source, list, func(r *replay) error {
		asked := make([][]*question, len(found))
		var all []*question
		for i := range found {
			e, traced := &found[i], list[i]
			if traced.pass == nil || traced.result.State == Stale {
				e.Why = "its example is " + string(traced.result.State)
				continue
			}
			asked[i] = questionsOf(r.node, traced.pass, e.Fields)
			all = append(all, asked[i]...)
		}
		if err := r.node.answer(ctx, all); err != nil {
			return err
		}
		for i := range found {
			for _, q := range asked[i] {
				found[i].Rules = addExaminers(found[i].Rules, q.found)
			}
			found[i].Traced = len(found[i].Rules) > 0
		}
		return nil
	})
	if unavailable := (*host.UnavailableError)(nil); errors.As(err, &unavailable) {
		for i := range found {
			found[i].Why = "no replica runs"
		}
		return nil
	}
	return err
}

// maxDepth bounds the recirculations before a flow.
const maxDepth = 8

// withAncestors returns flows, and after them one flow for each recirculation that leads to them.
func withAncestors(ctx context.Context, wd *workdir.Dir, samples []appctl.Megaflow) (list []*recorded, err error) {
	wanted, known := map[uint32]bool{}, map[uint32]bool{0: true}
	add := func(m appctl.Megaflow, asked bool) {
		id, _ := idOf(m.Key)
		list = append(list, &recorded{Megaflow: m, recirc: id, asked: asked})
		if !known[id] {
			wanted[id] = true
		}
	}
	for _, m := range samples {
		add(m, true)
	}
	for depth := 0; len(wanted) > 0 && depth < maxDepth; depth++ {
		sought := slices.Collect(maps.Keys(wanted))
		_, err := ReadSurvey(ctx, wd, func(m appctl.Megaflow) {
			for _, id := range odp.Recirculations(m.Actions) {
				if wanted[id] && !known[id] {
					known[id] = true
					add(m, false)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for _, id := range sought { // nothing recirculates to the unknown ones
			delete(wanted, id)
		}
	}
	return list, nil
}

// nameCandidates names the flows that match the fields, for explosions that were not traced.
func nameCandidates(ctx context.Context, source Source, found []Explosion, survey *Survey) error {
	if !slices.ContainsFunc(found, func(e Explosion) bool { return !e.Traced }) {
		return nil
	}
	node, err := Open(ctx, source.Name, source.Dir, "")
	if errors.Is(err, ErrNoFlows) {
		return nil
	}
	if err != nil {
		return err
	}
	defer node.Close()
	asked := make([][]*question, len(found))
	var all []*question
	for i, e := range found {
		if e.Traced {
			continue
		}
		packet := survey.constantsOf(e.Mask)
		for _, field := range e.Fields {
			q := &question{field: field, lookups: []*lookup{{table: anyTable, above: -1, packet: packet}}}
			asked[i], all = append(asked[i], q), append(all, q)
		}
	}
	if err := node.answer(ctx, all); err != nil {
		return err
	}
	for i := range found {
		for _, q := range asked[i] {
			found[i].Rules = addExaminers(found[i].Rules, q.found)
		}
	}
	return nil
}

// constantsOf returns the fields that all packets of a group have in common, as far as flows of OpenFlow
// may match them.
func (s *Survey) constantsOf(mask string) map[string]string {
	packet := map[string]string{}
	for _, g := range s.Groups {
		if g.Mask != mask {
			continue
		}
		constant := map[string]bool{}
		for _, f := range g.Fields {
			constant[f.Name] = f.Values == 1
		}
		var etherType, proto string
		for c := range odp.Criteria(g.Sample.Key) {
			name := c.Name()
			value, _, masked := strings.Cut(c.Value, "/")
			switch {
			case c.IsOpen() || !constant[name]:
			case name == "dl_type":
				etherType = value
			case name == "nw_proto":
				proto = value
			case !masked && name != "in_port" && name != "recirc_id" && name != "nw_frag" && !strings.HasPrefix(name, "ct_"):
				packet[name] = value
			}
		}
		word, _, _ := strings.Cut((&openflow.Canonical{}).Match("dl_type="+etherType+",nw_proto="+cmp.Or(proto, "0")), ",")
		packet[word] = ""
	}
	return packet
}

// String says how many flows there are, and what makes them so many.
func (e Explosion) String() string {
	var fields []string
	for i, name := range e.Fields {
		fields = append(fields, fmt.Sprintf("%s (%d values)", name, e.Values[i]))
	}
	return fmt.Sprintf("%d of %d flows of the datapath differ in %s: without them, about %d were left", e.Flows, e.Of, strings.Join(fields, ", "), e.Left)
}
