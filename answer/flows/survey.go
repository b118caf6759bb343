package flows

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/workdir"
)

// Survey is what one reading of the recorded flows of a datapath finds out. Its size does not depend on
// their number.
type Survey struct {
	Flows   int
	Packets uint64
	Lost    int      // lines that can't be read
	Masks   int      // different masks; at most maxMasks are told apart
	Groups  []*Group // of many flows with one mask, the most flows first

	groups   map[uint64]*Group
	counting int // the groups whose values are counted
	buffer   []criterion
}

// Group is the flows of a datapath that have one mask: the same fields, and the same bits of them.
type Group struct {
	Flows   int
	Packets uint64
	Mask    string          // the fields with their masks
	Fields  []Field         // the fields that the flows match, in their order
	Tuple   int             // the flows that were left if they did not match the 5-tuple, about
	Sample  appctl.Megaflow // the one with the most packets

	tuple *distinct
}

// Field is a field that the flows of a group match.
type Field struct {
	Name   string // in a match of OpenFlow
	Values int    // different ones, about
	Merged int    // the flows that were left if they did not match the field, about

	values, merged *distinct
}

const (
	// maxMasks bounds the groups. The datapath of the kernel is slow with more than some hundred masks.
	maxMasks = 1 << 16
	// fewFlows is the number of flows from which the values of a group are counted.
	fewFlows = 8
	// maxCounted bounds the groups whose values are counted: each takes 4 KiB for twice each field.
	maxCounted = 256
	// maxSample bounds the flow that is kept of a group, in bytes.
	maxSample = 64 << 10
)

// criterion is a field that a flow matches.
type criterion struct {
	odp.Criterion
	value, mask string
	hash        uint64
}

// ErrNoMegaflows is wrapped when a node has no recorded flows of its datapath.
var ErrNoMegaflows = errors.New("no dpctl/dump-flows was recorded: collect a source that has it")

// ReadSurvey reads the recorded flows of the datapath of a node, and calls also with each.
func ReadSurvey(ctx context.Context, wd *workdir.Dir, also func(appctl.Megaflow)) (*Survey, error) {
	file, ok, err := wd.Collected(wd.Recorded(workdir.RecordedDatapathFlows))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNoMegaflows
	}
	defer file.Close()
	s := &Survey{groups: map[uint64]*Group{}}
	for megaflow, err := range appctl.Megaflows(file) {
		switch {
		case errors.Is(err, appctl.ErrMegaflow):
			s.Lost++
			continue
		case err != nil:
			return nil, err
		case s.Flows%1024 == 0 && ctx.Err() != nil:
			return nil, ctx.Err()
		}
		s.add(&megaflow)
		if also != nil {
			also(megaflow)
		}
	}
	s.finish()
	return s, nil
}

// add adds a flow to its group.
func (s *Survey) add(megaflow *appctl.Megaflow) {
	s.Flows++
	s.Packets += megaflow.Packets
	list := s.buffer[:0]
	key := uint64(hashStart)
	for c := range odp.Criteria(megaflow.Key) {
		if c.IsOpen() || c.Header == "packet_type" {
			continue
		}
		value, bits, masked := strings.Cut(c.Value, "/")
		if !masked && (c.Header == "ct_state" || c.Header == "tcp_flags" || c.Header == "flags") {
			bits = flagNames(value) // "+trk-new" has its mask in its names
		}
		key = hash(hash(hash(hash(key, c.Header), c.Field), "/"), bits)
		list = append(list, criterion{Criterion: c, value: value, mask: bits})
	}
	s.buffer = list
	group := s.groups[key]
	if group == nil {
		if len(s.groups) == maxMasks {
			return
		}
		group = &Group{}
		s.groups[key] = group
	}
	group.add(s, megaflow, list)
}

// flagNames returns the names of flags without their signs.
func flagNames(text string) string { return strings.ReplaceAll(text, "+", "-") }

func (g *Group) add(s *Survey, megaflow *appctl.Megaflow, list []criterion) {
	g.Flows++
	g.Packets += megaflow.Packets
	if g.Flows == fewFlows && s.counting < maxCounted || g.Flows == leastFlows && g.Fields == nil && s.makeRoom() {
		s.counting++
		g.begin(list)
	}
	if g.Fields == nil || len(g.Fields) != len(list) {
		return
	}
	if size := len(megaflow.Key) + len(megaflow.Actions); size < maxSample && (g.Sample.Key == "" || megaflow.Packets > g.Sample.Packets) {
		g.Sample = *megaflow
	}
	var all, tuple uint64
	for i := range list {
		list[i].hash = mix(hash(hash(hash(hash(hashStart, list[i].Header), list[i].Field), "="), list[i].value))
		all += list[i].hash
		if isTuple(g.Fields[i].Name) {
			tuple += list[i].hash
		}
	}
	for i := range list {
		g.Fields[i].values.add(mix(list[i].hash))
		g.Fields[i].merged.add(mix(all - list[i].hash))
	}
	g.tuple.add(mix(all - tuple))
}

// makeRoom ends counting for a group that has few flows so far. It reports whether there was one.
func (s *Survey) makeRoom() bool {
	for _, g := range s.groups {
		if g.Fields != nil && g.Flows < leastFlows {
			g.Fields, g.tuple, g.Sample = nil, nil, appctl.Megaflow{}
			s.counting--
			return true
		}
	}
	return false
}

// hashStart is the hash of no text.
const hashStart = 14695981039346656037

// hash adds a text to a hash (FNV-1a). Without a seed, a report is the same each time.
func hash(sum uint64, text string) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * 1099511628211
	}
	return sum
}

// mix spreads the bits of a sum of hashes.
func mix(sum uint64) uint64 {
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	return sum ^ sum>>29
}

// begin begins to count the values of the fields.
func (g *Group) begin(list []criterion) {
	var mask []string
	for _, c := range list {
		name := cmp.Or(c.Name(), strings.Trim(c.Header+"."+c.Field, "."))
		g.Fields = append(g.Fields, Field{Name: name, values: &distinct{}, merged: &distinct{}})
		if c.mask != "" {
			name += "/" + c.mask
		}
		mask = append(mask, name)
	}
	g.Mask, g.tuple = strings.Join(mask, ","), &distinct{}
}

// isTuple reports whether a field is of the 5-tuple.
func isTuple(name string) bool { return isAddress(name) || isPort(name) || name == "nw_proto" }

func isAddress(name string) bool {
	return name == "nw_src" || name == "nw_dst" || name == "ipv6_src" || name == "ipv6_dst"
}

func isPort(name string) bool { return name == "tp_src" || name == "tp_dst" }

// finish makes the groups of the answer.
func (s *Survey) finish() {
	s.Masks = len(s.groups)
	for _, g := range s.groups {
		if g.Fields == nil {
			continue
		}
		g.Tuple, g.tuple = g.tuple.count(), nil
		for i := range g.Fields {
			f := &g.Fields[i]
			f.Values, f.Merged = f.values.count(), f.merged.count()
			f.values, f.merged = nil, nil
		}
		s.Groups = append(s.Groups, g)
	}
	slices.SortFunc(s.Groups, func(a, b *Group) int {
		return cmp.Or(b.Flows-a.Flows, strings.Compare(a.Mask, b.Mask))
	})
	s.groups, s.buffer = nil, nil
}
