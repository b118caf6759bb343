package flows

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/terminal"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/workdir"
)

// Examiner is a flow for which ovs-vswitchd looks at a field of a packet, so that the flows of the
// datapath have to match the field.
type Examiner struct {
	Field string `json:"field"`
	// Matched is set if the packet matched the flow, and not for a flow of higher priority that it only
	// had to be compared with.
	Matched bool `json:"matched"`
	// Candidate is set if no packet was traced: the flow looks at the field, and fits the rest of the flow
	// of the datapath.
	Candidate bool `json:"candidate,omitempty"`
	Flow      Flow `json:"flow"`
	// Others counts the flows of the same table that are as good a reason.
	Others int `json:"others,omitempty"`
}

// String names the rule and the flow.
func (e Examiner) String() string {
	what := cmp.Or(e.Flow.For, "a flow")
	how := "is compared with the packet"
	switch {
	case e.Matched:
		how = "matches the packet"
	case e.Candidate:
		how = "looks at it"
	}
	text := fmt.Sprintf("%s: %s %s (%s, table %d %s, priority %d, %s)", e.Field, what, how, e.Flow.Bridge, e.Flow.Table, e.Flow.Stage, e.Flow.Priority,
		phrase.Shorten(e.Flow.Where(), maxExaminerMatch))
	text = strings.ReplaceAll(text, " , ", ", ")
	if e.Others > 0 {
		text += fmt.Sprintf(", and %s like it", phrase.Count(e.Others, "flow"))
	}
	return terminal.Escape(text)
}

// maxExaminerMatch bounds the match that is printed of a flow, in bytes.
const maxExaminerMatch = 200

// maxExaminers bounds the rules that are named for one field, and maxKept the flows of which they are
// chosen.
const (
	maxExaminers = 3
	maxKept      = 16
)

// question asks which flows make ovs-vswitchd look at a field of a packet.
type question struct {
	field   string
	lookups []*lookup
	found   []Examiner
}

// lookup is the lookup of a packet in a table.
type lookup struct {
	bridge *Bridge           // nil for all
	table  int               // anyTable for all
	above  int               // the priority of the flow that matched, -1 for none
	packet map[string]string // what is known of its fields
	best   []Flow            // of the highest priority first
	others int
}

// anyTable stands for all tables.
const anyTable = -1

// questionsOf returns a question for each of some fields of the packet of a pass.
func questionsOf(n *Node, p *pass.Pass, fields []string) []*question {
	list := make([]*question, len(fields))
	for i, field := range fields {
		list[i] = &question{field: field}
	}
	packet := map[string]string{}
	for _, f := range p.Flow.Fields() {
		packet[f.Name] = f.Value
	}
	if p.ID != 0 || packet["recirc_id"] != "" && packet["recirc_id"] != "0" {
		packet = known(packet)
	}
	for _, stage := range p.Stages {
		at := slices.IndexFunc(n.Bridges, func(b *Bridge) bool { return b.Name == stage.Bridge })
		if at >= 0 {
			for _, q := range list {
				q.ask(n, n.Bridges[at], stage, packet)
			}
		}
		for token := range openflow.Tokens(stage.Flow) {
			if name, value, valued := strings.Cut(token, "="); valued && !strings.Contains(value, "/") {
				packet[name] = value
			}
		}
		for _, line := range stage.Lines {
			execute(packet, line)
		}
	}
	return list
}

// known returns the fields of a packet that is recirculated: its registers are not printed.
func known(packet map[string]string) map[string]string {
	for name := range packet {
		if isRegister(name) {
			delete(packet, name)
		}
	}
	return packet
}

func isRegister(name string) bool {
	return name == "metadata" || strings.HasPrefix(name, "reg") || strings.HasPrefix(name, "xreg") || strings.HasPrefix(name, "xxreg")
}

// execute applies an action to what is known of a packet.
func execute(packet map[string]string, action string) {
	target := openflow.Target(action)
	if target == "" {
		return
	}
	name, _ := openflow.FieldName(target)
	value, _, constant := openflow.Assignment(action)
	switch {
	case strings.HasPrefix(name, "xreg"), strings.HasPrefix(name, "xxreg"):
		for other := range packet { // registers overlap
			if isRegister(other) && other != "metadata" {
				delete(packet, other)
			}
		}
	case constant && !strings.Contains(value, "/"):
		packet[name] = value
	default:
		delete(packet, name)
	}
}

// ask adds a lookup to the question, or finds the answer in the flow that matched.
func (q *question) ask(n *Node, bridge *Bridge, stage pass.Stage, packet map[string]string) {
	if !stage.Miss && matchesOn(stage.Flow, q.field) || readsField(stage.Lines, q.field) || bridge.hashes(stage.Lines, q.field) {
		flow := matchedIn(stage)
		flow.Text = stage.Flow
		if named, err := n.name(bridge, flow); err == nil {
			q.found = addExaminers(q.found, []Examiner{{Field: q.field, Matched: true, Flow: named}})
		}
	}
	asked := &lookup{bridge: bridge, table: stage.Table, above: stage.Priority, packet: map[string]string{}}
	if stage.Miss {
		asked.above = -1
	}
	for name, value := range packet {
		asked.packet[name] = value
	}
	q.lookups = append(q.lookups, asked)
}

// matchesOn reports whether a match has a field.
func matchesOn(match, field string) bool {
	if !strings.Contains(match, field) {
		return false
	}
	for token := range openflow.Tokens(match) {
		name, value, valued := strings.Cut(token, "=")
		if !valued {
			continue
		}
		name, mask, ok := openflow.MaskOf(name, value)
		if ok && name == field && !mask.IsEmpty() {
			return true
		}
	}
	return false
}

// fieldName matches the name of a field in an action, with an arrow if the action writes it.
var fieldName = lazyregexp.New(`(->)?\b((?:NXM_OF|NXM_NX|OXM_OF)_[A-Z0-9_]+)`)

// readsField reports whether an action of a stage reads a field of the packet.
func readsField(actions []string, field string) bool {
	for _, line := range actions {
		if strings.HasPrefix(line, "->") {
			continue
		}
		for _, found := range fieldName.FindAllStringSubmatch(line, -1) {
			if read, known := openflow.FieldName(found[2]); known && read == field && found[1] == "" {
				return true
			}
		}
		switch {
		case field == "nw_ttl" && strings.HasPrefix(line, "dec_ttl"), strings.HasPrefix(field, "dl_") && line == "NORMAL":
			return true
		}
	}
	return false
}

// actsOn reports whether an action of a recorded flow reads a field.
func (b *Bridge) actsOn(flow *record, field string) bool {
	return readsField([]string{flow.actions}, field) ||
		strings.Contains(flow.actions, "group:") && b.hashes(slices.Collect(openflow.Split(flow.actions)), field)
}

// hashes reports whether actions send the packet to a group that chooses its bucket by a hash of a field.
func (b *Bridge) hashes(actions []string, field string) bool {
	for _, line := range actions {
		id, ok := strings.CutPrefix(line, "group:")
		if ok && slices.Contains(b.hashed()[id], field) {
			return true
		}
	}
	return false
}

// groupFields matches the fields of which a group computes a hash.
var groupFields = lazyregexp.New(`selection_method=hash\b.*?\bfields\(([^()]*)\)`)

// hashed returns the fields of which the groups of a bridge compute a hash, by the groups' numbers. It reads
// the dump once; a bridge without a readable dump has none.
func (b *Bridge) hashed() map[string][]string {
	if b.groups != nil {
		return b.groups
	}
	b.groups = map[string][]string{}
	file, err := b.dir.Open(b.dir.DumpFile(b.Name, workdir.Groups))
	if err != nil {
		return b.groups
	}
	defer file.Close()
	groups, _ := openflow.Groups(file)
	for _, group := range groups {
		found := groupFields.FindStringSubmatch(group.Text)
		if found == nil {
			continue
		}
		var fields []string
		for field := range strings.SplitSeq(found[1], ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(field), "=")
			name, _ = openflow.FieldName(name)
			fields = append(fields, name)
		}
		b.groups[strconv.Itoa(int(group.ID))] = fields
	}
	return b.groups
}

// answer finds the flows in the dumps that questions are about. It reads each dump once.
func (n *Node) answer(ctx context.Context, questions []*question) error {
	for _, bridge := range n.Bridges {
		byTable := map[int][]*question{}
		for _, q := range questions {
			for _, l := range q.lookups {
				if (l.bridge == bridge || l.bridge == nil) && !slices.Contains(byTable[l.table], q) {
					byTable[l.table] = append(byTable[l.table], q)
				}
			}
		}
		if len(byTable) == 0 {
			continue
		}
		var done Listed
		err := n.eachFlow(ctx, bridge, &Filter{}, nil, &done, func(flow *record) (bool, error) {
			for _, table := range []int{flow.Table, anyTable} {
				for _, q := range byTable[table] {
					if err := q.consider(n, bridge, flow); err != nil {
						return false, err
					}
				}
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	for _, q := range questions {
		q.conclude()
	}
	return nil
}

// consider compares a flow with the lookups of a question.
func (q *question) consider(n *Node, bridge *Bridge, flow *record) error {
	matches := matchesOn(flow.Match, q.field)
	for _, l := range q.lookups {
		if !matches && (l.table != anyTable || !bridge.actsOn(flow, q.field)) {
			continue
		}
		if !l.isIn(bridge, flow.Table) || flow.Priority <= l.above || !l.reaches(flow, q.field) {
			continue
		}
		if last := len(l.best) - 1; last+1 == maxKept && !l.isBefore(flow.Priority, &flow.Packets, l.best[last]) {
			l.others++
			continue
		}
		named, err := n.name(bridge, flow)
		if err != nil {
			return err
		}
		l.best = append(l.best, named)
		slices.SortStableFunc(l.best, func(a, b Flow) int {
			if l.isBefore(a.Priority, a.Packets, b) {
				return -1
			}
			return 1
		})
		if len(l.best) > maxKept {
			l.best = l.best[:maxKept]
			l.others++
		}
	}
	return nil
}

func (l *lookup) isIn(bridge *Bridge, table int) bool {
	return (l.bridge == nil || l.bridge == bridge) && (l.table == anyTable || l.table == table)
}

// isBefore reports whether a flow comes before another one: in one table the flow with the higher priority,
// which the classifier looks at first, and in different tables the flow with more packets.
func (l *lookup) isBefore(priority int, packets *uint64, other Flow) bool {
	if l.table == anyTable {
		return packets != nil && (other.Packets == nil || *packets > *other.Packets)
	}
	return priority > other.Priority
}

// reaches reports whether a lookup compares a field of the packet with a flow: all that the classifier
// compares before it is as in the flow (lib/classifier.c of Open vSwitch).
func (l *lookup) reaches(flow *record, field string) bool {
	for token := range openflow.Tokens(flow.Match) {
		name, value, valued := strings.Cut(token, "=")
		if !valued {
			if !l.mayBe(token, segment(field)) {
				return false
			}
			continue
		}
		name, _ = openflow.FieldName(name)
		if name == field || segment(name) >= segment(field) {
			continue
		}
		if has, ok := l.packet[name]; ok && !openflow.Fits(name, value, has) {
			return false
		}
	}
	return true
}

// mayBe reports whether the packet may be of a protocol, as far as the classifier compares that before a
// field of a segment.
func (l *lookup) mayBe(protocol string, before int) bool {
	etherType, proto, ok := openflow.Protocol(protocol)
	if !ok || before < 2 {
		return true
	}
	for word := range l.packet {
		if ether, transport, ok := openflow.Protocol(word); ok {
			return ether == etherType && (proto == 0 || before < 3 || transport == proto)
		}
	}
	return true
}

// segment returns the part of a flow in which the classifier compares a field: metadata, Ethernet,
// network, transport (lib/flow.h of Open vSwitch).
func segment(name string) int {
	switch {
	case strings.HasPrefix(name, "dl_"), strings.HasPrefix(name, "vlan_"), strings.HasPrefix(name, "mpls_"), name == "eth_type":
		return 1
	case strings.HasPrefix(name, "nw_"), strings.HasPrefix(name, "ipv6_"), strings.HasPrefix(name, "arp_"):
		return 2
	case strings.HasPrefix(name, "tp_"), strings.HasPrefix(name, "icmp_"), strings.HasPrefix(name, "nd_"), name == "tcp_flags":
		return 3
	}
	return 0
}

// conclude makes the answer of a question from its lookups, in the order in which the packet passed the tables.
func (q *question) conclude() {
	for _, l := range q.lookups {
		var found []Examiner
		for _, flow := range l.best {
			found = append(found, Examiner{Field: q.field, Flow: flow, Candidate: l.table == anyTable})
		}
		if len(found) > 0 {
			found[0].Others = l.others
		}
		q.found = addExaminers(q.found, found)
	}
	q.lookups = nil
}

// addExaminers adds examiners of other rules, at most as many as are printed.
func addExaminers(list, more []Examiner) []Examiner {
	for _, e := range more {
		same := slices.IndexFunc(list, func(known Examiner) bool {
			return known.Field == e.Field && known.Flow.Bridge == e.Flow.Bridge && known.Flow.Table == e.Flow.Table &&
				(known.Flow.Text == e.Flow.Text || known.Flow.For != "" && known.Flow.For == e.Flow.For)
		})
		of := 0
		for _, known := range list {
			if known.Field == e.Field {
				of++
			}
		}
		switch {
		case same >= 0 && list[same].Flow.Text == e.Flow.Text:
		case same >= 0:
			list[same].Others += 1 + e.Others
		case of < maxExaminers:
			list = append(list, e)
		}
	}
	return list
}
