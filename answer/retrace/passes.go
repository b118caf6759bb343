package retrace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/tracetext"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/snapshot/rules"
)

// result is what becomes of a packet in the passes of one ofproto/trace, or in one ovn-trace.
type result struct {
	passes     []*pass.Pass
	way        []*pass.Pass // those that the packet goes through, in their order
	outputs    []string
	controller *pass.Stage
	toOVS      bool // a copy goes to a controller, or ovs-vswitchd consumes it
	notes      []string
	missing    []string
	names      map[string]string // of datapath ports
	stages     []Place
}

// verdict returns the verdict of a result.
func (f *result) verdict() Verdict {
	switch {
	case len(f.missing) > 0:
		return Undetermined
	case len(f.outputs) > 0:
		return Delivered
	case f.toOVS:
		return Controller
	}
	return Dropped
}

// ends returns what becomes of the packet, in sentences.
func (f *result) ends() []string {
	list := slices.Clone(f.outputs)
	if f.toOVS {
		list = append(list, "a copy goes to the controller")
		if len(f.outputs) == 0 {
			list[0] = "it goes to the controller"
		}
	}
	return append(list, f.notes...)
}

func (f *result) miss(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.missing, text) {
		f.missing = append(f.missing, text)
	}
}

// follow goes through the passes of one trace. names are the ports by their numbers in the datapath.
func follow(passes []*pass.Pass, names map[string]string) result {
	f := result{passes: passes, names: names}
	if len(passes) > 0 {
		f.enter(passes[0])
	}
	return f
}

// enter follows a pass.
func (f *result) enter(p *pass.Pass) {
	f.way = append(f.way, p)
	for _, sent := range p.Controllers() {
		if sent.Stage >= 0 {
			f.controller = &p.Stages[sent.Stage]
		}
		f.toOVS = true
	}
	switch {
	case p.Failed() != "":
		return
	case p.ActionsText == "":
		f.miss("the output ends before the datapath actions of %s", nameOf(p))
		return
	case strings.HasSuffix(p.ActionsText, "...") || strings.HasSuffix(p.ActionsText, "…") || strings.Count(p.ActionsText, "(") != strings.Count(p.ActionsText, ")"):
		f.miss("the datapath actions of %s are cut off", nameOf(p))
		return
	}
	f.execute(p, p.Actions, 0)
}

// nameOf names a pass.
func nameOf(p *pass.Pass) string {
	if p.ID == 0 {
		return "the packet"
	}
	return fmt.Sprintf("the pass after recirc(%#x)", p.ID)
}

// maxNested bounds actions in actions.
const maxNested = 16

// execute follows datapath actions.
func (f *result) execute(p *pass.Pass, actions []odp.Action, depth int) {
	if depth > maxNested {
		f.miss("the datapath actions are nested too deeply")
		return
	}
	tunnel, hashed := "", false
	for _, action := range actions {
		switch a := action.(type) {
		case odp.Output:
			f.output(a.Port, tunnel)
		case odp.SetTunnel:
			tunnel = describeTunnel(a.Tunnel)
		case odp.PushTunnel:
			f.output(a.Out, describeTunnel(a.Tunnel))
		case odp.PopTunnel:
			f.miss("the packet goes on at the tunnel port %s, which was not pasted", a.Port)
		case odp.Hash:
			hashed = true
		case odp.Recirculate:
			f.resume(p, a.ID, hashed)
		case odp.Userspace:
			f.toOVS = f.toOVS || a.Controller
			if a.SlowPath {
				f.note("ovs-vswitchd takes the packet itself: %s", cmp.Or(strings.Join(p.SlowPath, ", "), "slow path"))
			}
		case odp.Clone:
			f.execute(p, a.Actions, depth+1)
		case odp.CheckLength:
			f.note("a packet of more than %d bytes goes another way", a.Size)
			f.execute(p, a.AtMost, depth+1)
		case odp.Meter:
			f.note("meter %s may drop it", a.ID)
		case odp.Unknown:
			f.miss("the datapath action %q is not known", phrase.Shorten(a.Text, 80))
		}
	}
}

func (f *result) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// resume follows the pass after a recirculation.
func (f *result) resume(after *pass.Pass, id uint32, hashed bool) {
	for _, next := range f.passes {
		if next.ID == id && !slices.Contains(f.way, next) {
			next.Resume(after)
			f.enter(next)
			return
		}
	}
	for _, next := range f.way {
		if next.ID == id && id != 0 {
			return // another copy of the packet, which goes the same way
		}
	}
	if hashed {
		f.miss("a hash of the packet decides how it goes on after recirc(%#x), which ofproto/trace does not follow", id)
		return
	}
	f.miss("the packet goes on after recirc(%#x), and that pass was not pasted", id)
}

// describeTunnel names a tunnel by its type and its other end.
func describeTunnel(t odp.Tunnel) string {
	text := "a tunnel"
	if t.Type != "" {
		text = "a tunnel (" + t.Type + ")"
	}
	if t.Dst.IsValid() {
		text += " to " + t.Dst.String()
	}
	return text
}

// output adds a port by which a copy leaves.
func (f *result) output(port, tunnel string) {
	text := f.portText(port)
	if tunnel != "" {
		text = fmt.Sprintf("it enters %s, by %s", tunnel, text)
	} else {
		text = "it leaves by " + text
	}
	if !slices.Contains(f.outputs, text) {
		f.outputs = append(f.outputs, text)
	}
}

// portText names a port of the datapath, also by the name that was recorded for its number.
func (f *result) portText(port string) string {
	if _, err := strconv.ParseUint(port, 10, 32); err != nil {
		return "port " + port
	}
	text := "port " + port + " of the datapath"
	if name := f.names[port]; name != "" {
		text += " (" + name + ")"
	}
	return text
}

// outputsOf returns the OpenFlow ports to which a pass sends, with the bridge of each.
func outputsOf(p *pass.Pass) (ports []pass.Stage) {
	for _, stage := range p.Stages {
		for _, line := range stage.Lines {
			if _, ok := strings.CutPrefix(line, "output:"); ok {
				stage.Lines = []string{strings.TrimPrefix(line, "output:")}
				ports = append(ports, stage)
			}
		}
	}
	return ports
}

// end returns the pass and the stage that decided.
func (f *result) end() (p *pass.Pass, stage *pass.Stage) {
	if len(f.way) == 0 {
		return nil, nil
	}
	p = f.way[len(f.way)-1]
	if f.controller != nil && len(f.outputs) == 0 {
		return p, f.controller
	}
	if last, ok := p.Last(); ok {
		return p, &last
	}
	for _, before := range slices.Backward(f.way) {
		if last, ok := before.Last(); ok {
			return before, &last
		}
	}
	return p, nil
}

// readSwitch reads the output of an ofproto/trace.
func (r *reader) readSwitch(ctx context.Context, t *Traced) error {
	question := t.trace.Question()
	text := t.trace.Text
	if !strings.Contains(text, "Flow: ") && question.Flow != "" { // the beginning was left out
		text = "Flow: " + strings.ReplaceAll(question.Flow, " ", "") + "\n\n" + text
		t.Lacks = append(t.Lacks, "its beginning was left out")
	}
	passes, err := pass.Parse(text)
	if err != nil {
		t.Verdict, t.Missing = Undetermined, []string{fmt.Sprintf("it can't be read: %v", err)}
		return nil
	}
	first := passes[0]
	t.Packet = first.Flow.String()
	t.Bridge = question.Bridge
	if len(first.Stages) > 0 {
		t.Bridge = cmp.Or(first.Stages[0].Bridge, t.Bridge)
	}
	t.InPort = r.portName(t.Bridge, first.Flow.Get("in_port"))
	t.result = follow(passes, r.numbers)
	if err := r.addPlaces(ctx, t); err != nil {
		return err
	}
	t.Verdict, t.Ends, t.Missing = t.result.verdict(), r.namedEnds(&t.result), t.result.missing
	if t.Verdict != Dropped {
		return nil
	}
	return r.explain(ctx, t)
}

// namedEnds returns the ends. Where the packet leaves by one port of which the datapath's number has no name, the OpenFlow port
// is added.
func (r *reader) namedEnds(f *result) []string {
	ends := f.ends()
	if len(f.outputs) != 1 || len(f.way) == 0 || !strings.HasSuffix(f.outputs[0], "of the datapath") {
		return ends
	}
	if sent := outputsOf(f.way[len(f.way)-1]); len(sent) == 1 && sent[0].Bridge != "" {
		ends[0] += fmt.Sprintf(", which is port %s of bridge %s", r.portName(sent[0].Bridge, sent[0].Lines[0]), sent[0].Bridge)
	}
	return ends
}

// addPlaces adds the flows that the packet matched, and the one that decided.
func (r *reader) addPlaces(ctx context.Context, t *Traced) error {
	for i, p := range t.result.way {
		for _, stage := range p.Stages {
			place, err := r.place(ctx, i, stage, p)
			if err != nil {
				return err
			}
			t.Stages = append(t.Stages, place)
		}
	}
	p, stage := t.result.end()
	if stage == nil {
		return nil
	}
	place, err := r.place(ctx, slices.Index(t.result.way, p), *stage, p)
	t.Where = &place
	return err
}

// place describes a flow that matched.
func (r *reader) place(ctx context.Context, number int, stage pass.Stage, p *pass.Pass) (Place, error) {
	place := Place{Pass: number, Bridge: stage.Bridge, Table: stage.Table, Actions: strings.Join(stage.Lines, "\n")}
	if !stage.Miss {
		place.Flow = strings.TrimPrefix(fmt.Sprintf("%s,priority=%d", stage.Flow, stage.Priority), ",")
		place.match = (&openflow.Canonical{}).Match(stage.Flow)
	}
	if stage.Cookie != 0 {
		place.Cookie = fmt.Sprintf("%#x", stage.Cookie)
	}
	place.Stage = rules.AgentTable(r.agents[stage.Bridge], stage.Table)
	if r.sb == nil || stage.Miss {
		return place, nil
	}
	layout, err := r.layout(ctx, stage.Bridge, keysOf(p))
	if err != nil || !layout.Known() {
		return place, err
	}
	rule, ok, err := r.rules.Find(rules.FlowOf(stage.Key(), layout))
	if err != nil || !ok {
		return place, err
	}
	place.Stage, place.Rule, place.Pipeline = rule.Stage, rule.Words, rule.Pipeline
	if rule.Datapath.Name != "" {
		place.Datapath = rule.Datapath.String()
	}
	return place, nil
}

func keysOf(p *pass.Pass) (keys []openflow.Key) {
	for _, stage := range p.Stages {
		if !stage.Miss {
			keys = append(keys, stage.Key())
		}
	}
	return keys
}

// explain adds the reason for a drop.
func (r *reader) explain(ctx context.Context, t *Traced) error {
	p, stage := t.result.end()
	t.Reason = string(rules.Explicit)
	if p == nil {
		return nil
	}
	if failure := p.Failed(); failure != "" {
		t.Reason, t.Why = string(rules.Failed), failure
		return nil
	}
	if stage == nil {
		return nil
	}
	if stage.Miss {
		t.Reason = string(rules.MissingFlow)
	}
	if kind := r.agents[stage.Bridge]; kind == rules.AgentIntegration {
		var tables []int
		for _, passed := range p.Stages {
			if passed.Bridge == stage.Bridge {
				tables = append(tables, passed.Table)
			}
		}
		t.Reason = string(rules.AgentReason(tables...))
	}
	if err := r.explainOVN(ctx, t, p, stage); err != nil {
		return err
	}
	r.explainByWarning(t, p, stage)
	return nil
}

// explainOVN adds the reason that OVN's databases give.
func (r *reader) explainOVN(ctx context.Context, t *Traced, p *pass.Pass, stage *pass.Stage) error {
	if r.sb == nil {
		return nil
	}
	layout, err := r.layout(ctx, stage.Bridge, keysOf(p))
	if err != nil || !layout.Known() {
		return err
	}
	end, err := r.rules.End(p, stage, stage.Bridge, layout)
	if err != nil {
		return err
	}
	why, err := r.rules.Drop(end)
	if err != nil {
		return err
	}
	t.Reason = string(why.Reason)
	t.Where.Rule, t.Where.Stage = cmp.Or(why.Rule.Words, t.Where.Rule), cmp.Or(why.Stage, t.Where.Stage)
	if why.Rule.Datapath.Name != "" {
		t.Where.Datapath = why.Rule.Datapath.String()
	}
	return nil
}

// explainByWarning adds what ovs-vswitchd remarked about the actions that ended the packet.
func (r *reader) explainByWarning(t *Traced, p *pass.Pass, stage *pass.Stage) {
	lines := stage.Lines
	if p.SkippedBefore(*stage) {
		lines = append([]string{">> " + pass.OutputSkipped}, lines...)
	}
	for _, line := range slices.Backward(lines) {
		why, isWarning := strings.CutPrefix(line, ">> ")
		switch {
		case line == "-> no live bucket", strings.HasSuffix(line, ", dropping"):
			t.Why = cmp.Or(t.Why, strings.TrimPrefix(line, "-> "))
		case !isWarning || why == pass.LearnIgnored:
		case why == pass.OutputSkipped:
			t.Reason, t.Why = string(rules.InputPort), why
			return
		default:
			t.Why = why
			return
		}
	}
}

// read reads a trace.
func (r *reader) read(ctx context.Context, trace tracetext.Trace) (*Traced, error) {
	t := &Traced{Node: r.Name, Origin: trace.Origin, Tool: string(trace.Tool), Lacks: slices.Clone(trace.Lacks), trace: trace}
	if trace.Words != nil {
		t.Command = trace.Describe()
	}
	if trace.Flat {
		t.Assumed = append(t.Assumed, "the text has no indentation: which flow an action is of is not certain")
	}
	if trace.Tool == tracetext.Logical {
		return t, r.readLogical(t)
	}
	return t, r.readSwitch(ctx, t)
}
