package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/portmap"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// Replayed is the outcome of replaying the recorded datapath flows of nodes.
type Replayed struct {
	Flows    []Megaflow `json:"flows"` // stale ones first, then flapping and untraced ones, each as recorded
	Current  int        `json:"current"`
	Flapping int        `json:"flapping"`
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
		if err := all.replayNode(ctx, s); err != nil {
			return nil, nodeError(s.Name, err)
		}
	}
	rank := func(m Megaflow) int { return slices.Index([]State{Stale, Flapping, Untraced, Current}, m.State) }
	slices.SortStableFunc(all.Flows, func(a, b Megaflow) int { return cmp.Compare(rank(a), rank(b)) })
	return all, nil
}

// replayList traces recorded flows of a node, and names the rules of the flapping ones.
func replayList(ctx context.Context, source Source, list []*recorded, also func(*replay) error) error {
	opened, err := Open(ctx, source.Name, source.Dir, "")
	if err != nil {
		return err
	}
	defer opened.Close()
	asked, err := host.Open(ctx, source.Name, source.Dir)
	if err != nil {
		return err
	}
	defer asked.Close()
	replica := asked.Replaced()
	replayed := &replay{node: opened, host: asked, list: list, ids: map[uint32]uint32{}, names: map[string]string{}, numbers: map[string]string{}}
	if err := replayed.readPorts(source); err != nil {
		return err
	}
	if err := replayed.run(ctx); err != nil {
		return err
	}
	if asked.Replaced() != replica {
		return errors.New("its replica was lost and started again meanwhile: run the command again")
	}
	return also(replayed)
}

// replayNode replays the recorded datapath flows of a node.
func (all *Replayed) replayNode(ctx context.Context, source Source) error {
	list, lost, err := readMegaflows(ctx, source.Dir)
	if err != nil {
		return err
	}
	if err := replayList(ctx, source, list, func(r *replay) error { return r.findExaminers(ctx) }); err != nil {
		return err
	}
	remark, err := datapathMoment(source)
	if err != nil {
		return err
	}
	if remark != "" {
		all.Remarks = append(all.Remarks, nodePrefix(source.Name)+remark)
	}
	all.Lost += lost
	if lost > 0 {
		all.Remarks = append(all.Remarks, fmt.Sprintf("%s%d lines of the recorded datapath flows can't be read", nodePrefix(source.Name), lost))
	}
	for _, recorded := range list {
		switch recorded.result.State {
		case Current:
			all.Current++
		case Flapping:
			all.Flapping++
		case Stale:
			all.Stale++
		case Untraced:
			all.Untraced++
		}
		all.Flows = append(all.Flows, recorded.result)
	}
	return nil
}

// datapathMoment says how long before or after the flows of a bridge the flows of the datapath
// were recorded: what changed in between makes a flow of the datapath look stale. It returns ""
// where that is less than a second for all bridges, or not known.
func datapathMoment(source Source) (string, error) {
	manifest, err := source.Dir.Manifest()
	if err != nil {
		return "", err
	}
	moments := manifest.Moments()
	i := slices.IndexFunc(moments, func(m workdir.Moment) bool { return m.What == workdir.DatapathFlows })
	if i < 0 {
		return "", nil
	}
	var farthest workdir.Moment
	var gap time.Duration
	for _, moment := range moments {
		if between := moments[i].At.Sub(moment.At); moment.Bridge != "" && between.Abs() > gap.Abs() {
			farthest, gap = moment, between
		}
	}
	if gap.Abs() < time.Second {
		return "", nil
	}
	order := "after"
	if gap < 0 {
		order = "before"
	}
	return fmt.Sprintf("the flows of the datapath were recorded %s %s the %s: what changed in between is among the stale ones", phrase.Duration(gap.Abs()), order, farthest), nil
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
	for _, row := range report.Ports {
		if port, ok := r.host.Port(row.Port); ok && !port.IsTunnel() && row.Replica != "none" {
			r.numbers[row.Port] = row.Replica
		}
		if r.names[row.Live] == "" {
			r.names[row.Live] = row.Port
		}
	}
	return nil
}

// run traces first the flows of packets that enter the node, and then the flows of recirculations
// whose identifiers these have shown. start stops the replica's clock, so
// the replica does not forget a recirculation.
func (r *replay) run(ctx context.Context) error {
	for progress := true; progress; {
		progress = false
		for _, recorded := range r.list {
			id, known := r.ids[recorded.recirc]
			if recorded.done || recorded.recirc != 0 && !known {
				continue
			}
			recorded.done, progress = true, true
			if err := r.traceMegaflow(ctx, recorded, id); err != nil {
				return err
			}
		}
	}
	for _, m := range r.list {
		if !m.done {
			m.result = r.node.inNames(m, r.names)
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

// traceMegaflow traces a packet of a recorded flow, and compares the actions.
func (r *replay) traceMegaflow(ctx context.Context, recorded *recorded, id uint32) error {
	recorded.result = r.node.inNames(recorded, r.names)
	key, actions, named := recorded.Key, recorded.Actions, true
	if port := portIn(key); port != "" && strings.Trim(port, "0123456789") == "" {
		named = false
		key, _, _ = strings.Cut(r.ports.Translate(key+", actions:drop"), ", actions:")
		_, actions, _ = strings.Cut(r.ports.Translate("actions:"+actions), "actions:")
	}
	if recorded.recirc != 0 {
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
		recorded.result.State, recorded.result.Why = Untraced, "ovs-vswitchd refuses the packet: "+refusal
		return nil
	}
	passes, err := pass.Parse(text)
	if err != nil {
		if !errors.Is(err, pass.ErrNoPass) {
			return err
		}
		recorded.result.State, recorded.result.Why = Untraced, err.Error()
		return nil
	}
	return r.compare(recorded, actions, passes[0])
}

// tuple6 matches the ports in the original tuple of a connection over IPv6.
var tuple6 = lazyregexp.New(`\bct_tuple6\([^()]*\)`)

// unknownField matches a field that the ovs-vswitchd of the node could not name, with a mask
// that selects nothing.
var unknownField = lazyregexp.New(`\bkey[0-9]+\([0-9a-f ]*/[0 ]*\),?`)

// length matches the type of a frame that has none, but a length, as frames with an LLC header
// have (BPDUs). ovs-vswitchd takes a key without a type for such a frame.
var length = lazyregexp.New(`,?\beth_type\(0(?:x0+)?/0xffff\)`)

// readable returns a match with the names that ovs-vswitchd reads in place of those that
// it prints (lib/odp-util.c of OVS 2.13 to 3.7).
func readable(key string) string {
	key = length.ReplaceAllLiteralString(key, "")
	key = strings.TrimSuffix(unknownField.ReplaceAllLiteralString(key, ""), ",")
	return tuple6.ReplaceAllStringFunc(key, func(tuple string) string {
		return strings.NewReplacer("src_port=", "tp_src=", "dst_port=", "tp_dst=").Replace(tuple)
	})
}

// compare compares the recorded actions with the actions of a pass.
func (r *replay) compare(recorded *recorded, actions string, pass *pass.Pass) error {
	recorded.result.Now = cmp.Or(pass.ActionsText, "drop")
	if pass.Failure == "No recirculation context" || pass.Failure == "Recirculation conflict" {
		recorded.result.State, recorded.result.Why = Untraced, "the replica forgot the recirculation before it was resumed: its clock runs, which start stops"
		return nil
	}
	if recorded.asked {
		recorded.pass = pass.Detached()
	}
	recorded.result.State = Stale
	if r.same(actions, pass) {
		recorded.result.State = Current
		r.compareMasks(recorded, pass)
		flood := odp.Floods(pass.Text)
		live, here := odp.PairedRecirculations(actions, flood, pass.Flow.String()), odp.PairedRecirculations(pass.ActionsText, flood, pass.Flow.String())
		for i := range min(len(live), len(here)) {
			if _, known := r.ids[live[i]]; !known {
				r.ids[live[i]] = here[i]
			}
		}
	}
	return r.explain(recorded, pass)
}

// same reports whether the recorded actions equal the actions of a pass.
func (r *replay) same(actions string, pass *pass.Pass) bool {
	if slow := odp.SlowPath(actions); slow != nil {
		for _, reason := range slow {
			if !slices.ContainsFunc(pass.SlowPath, func(text string) bool { return odp.SlowPathReason(text) == reason }) {
				return false
			}
		}
		return true
	}
	flood := odp.Floods(pass.Text)
	flow := pass.Flow.String()
	return odp.Normal(actions, flood, flow) == odp.Normal(cmp.Or(pass.ActionsText, "drop"), flood, flow)
}

// explain names the rules that a packet meets on the replica.
func (r *replay) explain(recorded *recorded, p *pass.Pass) error {
	for _, stage := range p.Stages {
		i := slices.IndexFunc(r.node.Bridges, func(b *Bridge) bool { return b.Name == stage.Bridge })
		if i < 0 {
			continue
		}
		bridge := r.node.Bridges[i]
		if stage.Miss {
			recorded.result.End = strings.TrimSpace(fmt.Sprintf("%s table %d %s: no flow matches", bridge.Name, stage.Table, r.node.tableName(bridge, stage.Table)))
			continue
		}
		flow := matchedIn(stage)
		rule, _, err := r.node.rule(bridge, flow)
		if err != nil {
			return err
		}
		recorded.result.End = strings.TrimSpace(fmt.Sprintf("%s table %d %s", bridge.Name, stage.Table, r.node.stageOf(bridge, flow, rule)))
		if words := rule.Words; rule.Cause.Table != "" && !slices.Contains(recorded.result.Rules, words) {
			recorded.result.Rules = append(recorded.result.Rules, words)
		}
	}
	return nil
}
