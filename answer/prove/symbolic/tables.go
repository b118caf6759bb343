package symbolic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/bdd"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// bridgeTables are the flows and groups of a bridge.
type bridgeTables struct {
	flows  map[int][]*flow // by table, the highest priority first
	groups map[uint32]*group
	layout *layout
	near   map[position][]*flow // what candidates found
}

// flow is a flow as bits that a packet has to have.
type flow struct {
	priority int
	match    []literal
	actions  []action
	clauses  []clause
	ofID     uint32 // the conjunction that it is the flow of, by conj_id
	isOfID   bool
	text     string
}

// clause is a part of a conjunction: a packet has to meet one of each dimension.
type clause struct {
	id                    uint32
	dimension, dimensions int
}

// group is a group with what each bucket does.
type group struct {
	kind    string
	choice  string // what decides about the bucket, "" if all have the packet
	buckets [][]action
}

// idOfBucket is what decides nothing.
var idOfBucket = lazyregexp.New(`bucket_id:[0-9]+,?`)

// position says which flows of a table a packet may meet, by the fields that are constant nearly everywhere: values are those of the fields of
// which known has the bit.
type position struct {
	table  int
	known  uint8
	values [4]uint64
}

// sorting are the fields of a position.
func sorting() []string { return []string{"metadata", "reg15", "reg14", "in_port"} }

// newTables compiles flows and groups in their canonical form. Flows that the layout can't express end in an unknown action.
func newTables(l *layout, bridge Bridge) (*bridgeTables, error) {
	t := &bridgeTables{flows: map[int][]*flow{}, groups: map[uint32]*group{}, layout: l, near: map[position][]*flow{}}
	canonical := &openflow.Canonical{Ports: bridge.Ports}
	for f, err := range bridge.Flows {
		if err == nil {
			err = t.add(f, canonical)
		}
		if err != nil {
			return nil, fmt.Errorf("flow %q: %w", f.Text, err)
		}
	}
	for _, list := range t.flows {
		slices.SortStableFunc(list, func(a, b *flow) int { return cmp.Compare(b.priority, a.priority) })
	}
	for _, g := range bridge.Groups {
		if err := t.addGroup(g, canonical); err != nil {
			return nil, fmt.Errorf("group %d: %w", g.ID, err)
		}
	}
	return t, nil
}

// add compiles a flow. One that no packet of the family meets is left out.
func (t *bridgeTables) add(f openflow.Flow, canonical *openflow.Canonical) error {
	key := canonical.Key(f)
	made := &flow{priority: int(key.Priority), text: f.Text}
	for token := range openflow.Tokens(key.Match) {
		name, value, valued := strings.Cut(token, "=")
		if etherType, proto, ok := openflow.Protocol(token); ok {
			if Family(etherType) != t.layout.family {
				return nil
			}
			if proto == 0 {
				continue
			}
			name, value, valued = "nw_proto", strconv.Itoa(int(proto)), true
		}
		switch {
		case !valued:
			continue // a flag of the flow, such as send_flow_rem
		case name == "dl_type":
			if etherType, err := strconv.ParseUint(value, 0, 16); err != nil || Family(etherType) != t.layout.family {
				return nil
			}
			continue
		case name == "conj_id":
			id, err := strconv.ParseUint(value, 0, 32)
			if err != nil {
				return err
			}
			made.ofID, made.isOfID = uint32(id), true
			continue
		}
		list, err := t.layout.criterion(name, value)
		if err != nil {
			return err
		}
		made.match = append(made.match, list...)
	}
	slices.SortFunc(made.match, func(a, b literal) int { return cmp.Compare(a.at, b.at) })
	var err error
	made.actions, made.clauses, err = t.layout.actions(canonical.Actions(f.Actions()))
	t.flows[int(key.Table)] = append(t.flows[int(key.Table)], made)
	return err
}

func (t *bridgeTables) addGroup(entry openflow.Entry, canonical *openflow.Canonical) error {
	head, rest, _ := strings.Cut(canonical.Group(entry.Text), ",bucket=")
	made := &group{}
	for token := range openflow.Split(head) {
		if kind, ok := strings.CutPrefix(token, "type="); ok {
			made.kind = kind
		}
	}
	for bucket := range strings.SplitSeq(rest, ",bucket=") {
		_, text, ok := strings.Cut(bucket, "actions=")
		if !ok {
			return errors.New("a bucket without actions")
		}
		list, _, err := t.layout.actions(text)
		if err != nil {
			return err
		}
		made.buckets = append(made.buckets, list)
		made.choice += ", " + idOfBucket.ReplaceAllString(strings.TrimSuffix(bucket[:len(bucket)-len(text)], "actions="), "")
	}
	made.choice = "a bucket of " + head[strings.IndexByte(head, ',')+1:] + made.choice
	if made.kind == "all" || len(made.buckets) < 2 {
		made.choice = ""
	}
	t.groups[uint32(entry.ID)] = made
	return nil
}

// candidates returns the flows of a table whose match does not contradict the fields of a position of packets.
func (t *bridgeTables) candidates(number int, p *packets) []*flow {
	at := position{table: number}
	for i, name := range sorting() {
		if value, ok := p.constant(t.layout.spans[name]); ok {
			at.known |= 1 << i
			at.values[i] = value
		}
	}
	if list, ok := t.near[at]; ok {
		return list
	}
	list := []*flow{}
	for _, f := range t.flows[number] {
		if !t.contradicts(f, at.known, p) {
			list = append(list, f)
		}
	}
	t.near[at] = list
	return list
}

// sorted returns packets that match a flow, in which the bits of the sorting fields that it matches are constant.
func (m *Machine) sorted(p *packets, f *flow) *packets {
	for _, name := range sorting() {
		s := m.layout.spans[name]
		for _, l := range f.match {
			if s.at <= l.at && l.at < s.at+s.width {
				p.bits[l.at] = constantBit(l.value)
			}
		}
	}
	return p
}

// contradicts reports whether a constant bit of a sorting field is another one than a flow matches.
func (t *bridgeTables) contradicts(f *flow, known uint8, p *packets) bool {
	for i, name := range sorting() {
		s := t.layout.spans[name]
		if known>>i&1 == 0 {
			continue
		}
		for _, l := range f.match {
			if s.at <= l.at && l.at < s.at+s.width && (p.bits[l.at] == bdd.All) != l.value {
				return true
			}
		}
	}
	return false
}
