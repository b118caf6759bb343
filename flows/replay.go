package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/portmap"
	"ovs-offline/internal/unixctl"
	"ovs-offline/replica"
	"ovs-offline/trace/host"
	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// Replayed is what became of the recorded datapath flows of nodes.
type Replayed struct {
	Flows    []Megaflow `json:"flows"` // stale ones first, then untraced ones, each as recorded
	Current  int        `json:"current"`
	Stale    int        `json:"stale"`
	Untraced int        `json:"untraced"`
	Lost     int        `json:"lost"` // lines that can't be read
	Remarks  []string   `json:"remarks,omitempty"`
}

// Why a flow could not be traced.
const (
	whyNoParent    = "no recorded flow recirculates packets to it"
	whyStaleParent = "the flow that recirculates packets to it is stale, or could not be traced"
)

// Replay traces a packet for each recorded datapath flow on the replicas of nodes, and
// compares the actions. All packets that a flow matches have the same actions, so any of
// them will do: the one whose open bits are as recorded.
func Replay(ctx context.Context, sources []Source) (*Replayed, error) {
	all := &Replayed{Flows: []Megaflow{}}
	for _, s := range sources {
		if err := all.node(ctx, s); err != nil {
			return nil, nodeError(s.Name, err)
		}
	}
	rank := func(m Megaflow) int { return slices.Index([]State{Stale, Untraced, Current}, m.State) }
	slices.SortStableFunc(all.Flows, func(a, b Megaflow) int { return cmp.Compare(rank(a), rank(b)) })
	return all, nil
}

func (all *Replayed) node(ctx context.Context, s Source) error {
	list, lost, err := readMegaflows(ctx, s.Dir)
	if err != nil {
		return err
	}
	n, err := Open(ctx, s.Name, s.Dir, "")
	if err != nil {
		return err
	}
	defer n.Close()
	h, err := host.Open(ctx, s.Name, s.Dir)
	if err != nil {
		return err
	}
	defer h.Close()
	replica := h.Replaced()
	r := &replay{node: n, host: h, list: list, ids: map[uint32]uint32{}, names: map[string]string{}, numbers: map[string]string{}}
	if err := r.readPorts(s); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	if h.Replaced() != replica {
		return errors.New("its replica was lost and started anew meanwhile: run the command again")
	}
	all.Lost += lost
	if lost > 0 {
		all.Remarks = append(all.Remarks, fmt.Sprintf("%s%d lines of the recorded datapath flows can't be read", nodePrefix(s.Name), lost))
	}
	for _, m := range list {
		switch m.result.State {
		case Current:
			all.Current++
		case Stale:
			all.Stale++
		case Untraced:
			all.Untraced++
		}
		all.Flows = append(all.Flows, m.result)
	}
	return nil
}

func nodePrefix(name string) string {
	if name == "" {
		return ""
	}
	return "node " + name + ": "
}

// replay traces the recorded flows of a node.
type replay struct {
	node  *Node
	host  *host.Host
	list  []*recorded
	ids   map[uint32]uint32 // the replica's recirculation for a recorded one
	ports portmap.Ports     // the replica's datapath port for a recorded number
	names map[string]string // of recorded datapath port numbers
	// numbers has the replica's datapath ports by their names, but for tunnels, which share
	// a device with a name of its own.
	numbers map[string]string
}

// readPorts reads the numbers that the ports have in both datapaths.
func (r *replay) readPorts(s Source) error {
	report, err := replica.Report(s.Dir)
	if err != nil {
		return fmt.Errorf("the replica's report: %w", err)
	}
	r.ports = report.DatapathPorts(true)
	for _, p := range report.Ports {
		if port, ok := r.host.Port(p.Port); ok && !port.IsTunnel() && p.Replica != "none" {
			r.numbers[p.Port] = p.Replica
		}
		if r.names[p.Live] == "" {
			r.names[p.Live] = p.Port
		}
	}
	return nil
}

// run traces first the flows of packets that enter the node, and then those of
// recirculations whose identifiers these have shown. start stops the replica's clock, so
// the replica does not forget a recirculation.
func (r *replay) run(ctx context.Context) error {
	for progress := true; progress; {
		progress = false
		for _, m := range r.list {
			id, known := r.ids[m.recirc]
			if m.done || m.recirc != 0 && !known {
				continue
			}
			m.done, progress = true, true
			if err := r.one(ctx, m, id); err != nil {
				return err
			}
		}
	}
	for _, m := range r.list {
		if !m.done {
			m.result = r.node.shown(m, r.names)
			m.result.State, m.result.Why = Untraced, r.whyNot(m)
		}
	}
	return nil
}

// whyNot returns why no recirculation of the replica is known for a flow.
func (r *replay) whyNot(m *recorded) string {
	for _, parent := range r.list {
		if slices.Contains(odp.Recirculations(parent.Actions), m.recirc) {
			return whyStaleParent
		}
	}
	return whyNoParent
}

// one traces a packet of a flow, and compares.
func (r *replay) one(ctx context.Context, m *recorded, id uint32) error {
	m.result = r.node.shown(m, r.names)
	key, actions, named := m.Key, m.Actions, true
	if port := portIn(key); port != "" && strings.Trim(port, "0123456789") == "" {
		named = false
		key, _, _ = strings.Cut(r.ports.Translate(key+", actions:drop"), ", actions:")
		_, actions, _ = strings.Cut(r.ports.Translate("actions:"+actions), "actions:")
	}
	if m.recirc != 0 {
		key = recircID.ReplaceAllString(key, fmt.Sprintf("recirc_id(%#x)", id))
	}
	if number, ok := r.numbers[portIn(key)]; ok && named { // a name that begins like a number can't be read
		key = inPort.ReplaceAllLiteralString(key, "in_port("+number+")")
	}
	key = readable(key)
	argv := []string{"ofproto/trace", key}
	if named {
		argv = []string{"ofproto/trace", "--names", key}
	}
	text, err := r.host.Ask(ctx, argv...)
	if err != nil {
		refusal, refused := unixctl.Refused(err)
		if !refused {
			return err
		}
		m.result.State, m.result.Why = Untraced, "ovs-vswitchd refuses the packet: "+refusal
		return nil
	}
	passes, err := pass.Parse(text)
	if err != nil {
		if !errors.Is(err, pass.ErrNoPass) {
			return err
		}
		m.result.State, m.result.Why = Untraced, err.Error()
		return nil
	}
	return r.compare(m, actions, passes[0])
}

// tuple6 matches the ports in the original tuple of a connection over IPv6.
var tuple6 = regexp.MustCompile(`\bct_tuple6\([^()]*\)`)

// unknownField matches a field that the ovs-vswitchd of the node could not name, with a mask
// that selects nothing.
var unknownField = regexp.MustCompile(`\bkey[0-9]+\([0-9a-f ]*/[0 ]*\),?`)

// length matches the type of a frame that has none, but a length, as frames with an LLC header
// have (BPDUs). ovs-vswitchd takes a key without a type for such a frame.
var length = regexp.MustCompile(`,?\beth_type\(0(?:x0+)?/0xffff\)`)

// readable returns a match with the names that ovs-vswitchd reads in place of those that
// it prints (lib/odp-util.c of OVS 2.13 to 3.7).
func readable(key string) string {
	key = length.ReplaceAllLiteralString(key, "")
	key = strings.TrimSuffix(unknownField.ReplaceAllLiteralString(key, ""), ",")
	return tuple6.ReplaceAllStringFunc(key, func(tuple string) string {
		return strings.NewReplacer("src_port=", "tp_src=", "dst_port=", "tp_dst=").Replace(tuple)
	})
}

// compare compares the recorded actions with those of a pass.
func (r *replay) compare(m *recorded, actions string, p *pass.Pass) error {
	m.result.Now = cmp.Or(p.ActionsText, "drop")
	if p.Failure == "No recirculation context" || p.Failure == "Recirculation conflict" {
		m.result.State, m.result.Why = Untraced, "the replica forgot the recirculation before it was resumed: its clock runs, which start stops"
		return nil
	}
	m.result.State = Stale
	if r.same(actions, p) {
		m.result.State = Current
		flood := odp.Floods(p.Text)
		live, here := odp.PairedRecirculations(actions, flood, p.Flow.String()), odp.PairedRecirculations(p.ActionsText, flood, p.Flow.String())
		for i := range min(len(live), len(here)) {
			if _, known := r.ids[live[i]]; !known {
				r.ids[live[i]] = here[i]
			}
		}
	}
	return r.explain(m, p)
}

// same reports whether the recorded actions are those of a pass.
func (r *replay) same(actions string, p *pass.Pass) bool {
	if slow := odp.SlowPath(actions); slow != nil {
		for _, reason := range slow {
			if !slices.ContainsFunc(p.SlowPath, func(text string) bool { return odp.SlowPathReason(text) == reason }) {
				return false
			}
		}
		return true
	}
	flood := odp.Floods(p.Text)
	flow := p.Flow.String()
	return odp.Normal(actions, flood, flow) == odp.Normal(cmp.Or(p.ActionsText, "drop"), flood, flow)
}

// explain names the rules that a packet meets on the replica.
func (r *replay) explain(m *recorded, p *pass.Pass) error {
	for _, s := range p.Stages {
		i := slices.IndexFunc(r.node.Bridges, func(b *Bridge) bool { return b.Name == s.Bridge })
		if i < 0 {
			continue
		}
		b := r.node.Bridges[i]
		if s.Miss {
			m.result.End = strings.TrimSpace(fmt.Sprintf("%s table %d %s: no flow matches", b.Name, s.Table, r.node.tableName(b, s.Table)))
			continue
		}
		flow := &record{cookie: s.Cookie, table: s.Table, priority: s.Priority}
		for _, token := range split(s.Flow) {
			flow.add(token)
		}
		rule, _, err := r.node.rule(b, flow)
		if err != nil {
			return err
		}
		m.result.End = strings.TrimSpace(fmt.Sprintf("%s table %d %s", b.Name, s.Table, r.node.stageOf(b, flow, rule)))
		if words := rule.Words; rule.Cause.Table != "" && !slices.Contains(m.result.Rules, words) {
			m.result.Rules = append(m.result.Rules, words)
		}
	}
	return nil
}
