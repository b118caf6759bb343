package restore

import (
	"context"
	"hash/maphash"
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// chunk is how many flows go to the switch in one bundle. Two bundles of 10,000
// on their way take as long as one of all, and bundles of 2,000 one after the
// other twice as long; memory grows with them, here and in ovs-vswitchd.
const chunk = 10000

// restoreFlows adds every flow that can be added, and names every other.
func restoreFlows(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		f, ok, err := n.openDump(b, workdir.Flows)
		if err != nil {
			return err
		}
		if !ok {
			o.Note(report.Unknown, "%s: no flows were collected", b.Name)
			continue
		}
		err = n.restoreBridgeFlows(ctx, b, f)
		f.Close()
		if err != nil {
			return err
		}
		o.Note(report.Restored, "")
	}
	return nil
}

func (n *Node) restoreBridgeFlows(ctx context.Context, b *Bridge, dump io.Reader) error {
	version, err := n.speaks(ctx, b)
	if err != nil {
		return err
	}
	l := &loader{node: n, bridge: b, version: version, has: newTally(), spelling: numbered}
	if l.guide, err = n.readGuide(ctx, b); err != nil {
		return err
	}
	defer l.guide.close()
	if l.words, err = l.readWords(); err != nil {
		return err
	}
	if err := l.load(ctx, dump); err != nil {
		return err
	}
	if l.damaged() {
		return l.makeUp(ctx)
	}
	l.tellWorded()
	return l.readBack(ctx)
}

// loader pushes the flows of one bridge.
type loader struct {
	node    *Node
	bridge  *Bridge
	version string
	guide   *guide
	has     tally             // of the flows that were loaded
	others  map[string]string // flows of other versions' dumps by key; read when first needed
	words   words             // what tells flows better than the dump; nil for none
	worded  int               // flows that took their actions from there
	in      *portion          // how much of the dump was read
	adding  *pace
	unknown unknownWords // that ovs-ofctl said it does not know
	// spelling is how ovs-ofctl has to print flows for them to be those of the dump.
	spelling string
	// problems are the first of the dump's lines that are no flows, and more how
	// many others held data; made up are the flows that were loaded in place of
	// those that a damaged dump lacks.
	problems []openflow.Problem
	more     int
	madeUp   []openflow.Flow
}

// pending is a flow on its way to the switch.
type pending struct {
	openflow.Flow
	text    string // as it is sent: mended
	version string // the OpenFlow version in which it is sent
	mends   []string
}

// batch is what was read of a dump since the last one: flows to add in one
// OpenFlow version, and lines that are none.
type batch struct {
	flows    []pending
	problems []openflow.Problem
	more     int // problems that held data and are not kept
}

// load reads the next flows while the switch takes the last ones.
func (l *loader) load(ctx context.Context, dump io.Reader) error {
	l.in, l.adding = newPortion(dump), l.node.pace("flows of "+l.bridge.Name+": adding")
	reading, stop := context.WithCancel(ctx)
	batches := make(chan batch)
	go func() {
		defer close(batches)
		l.read(l.in, func(b batch) bool {
			select {
			case batches <- b:
				return true
			case <-reading.Done():
				return false
			}
		})
	}()
	defer func() {
		stop()
		for range batches { // the reader has the file until it ends
		}
	}()
	var flying []sending
	defer func() {
		stop()
		for _, s := range flying {
			<-s.ended
		}
	}()
	for b := range batches {
		l.problems, l.more = append(l.problems, b.problems...), l.more+b.more
		l.node.Report.Counts(l.bridge.Name, workdir.Flows).Collected += len(b.flows)
		flying = append(flying, l.launch(reading, b.flows))
		if len(flying) < ahead {
			continue
		}
		if err := l.land(ctx, &flying); err != nil {
			return err
		}
	}
	for len(flying) > 0 {
		if err := l.land(ctx, &flying); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ahead is how many bundles are on their way at once: ovs-ofctl reads the flows
// of one while the switch takes another. Their order is of no matter: no two flows
// of a switch are in the same place. Of a dump that has the same flow twice, far
// apart, either may win.
const ahead = 2

// sending is a list on its way to the switch.
type sending struct {
	flows []pending
	ended chan error
}

func (l *loader) launch(ctx context.Context, flows []pending) sending {
	s := sending{flows, make(chan error, 1)}
	if len(flows) == 0 {
		s.ended <- nil
		return s
	}
	go func() { s.ended <- l.sendAs(ctx, flows, numbered) }()
	return s
}

// land waits for the first of the lists on their way. Where a flow of it was
// refused, none was taken, and it goes again.
func (l *loader) land(ctx context.Context, flying *[]sending) error {
	s := (*flying)[0]
	*flying = (*flying)[1:]
	err := <-s.ended
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return l.push(ctx, s.flows)
	}
	for _, p := range s.flows {
		l.loaded(p)
	}
	l.adding.tell(l.has.flows, l.in.done.Load(), l.in.size)
	return nil
}

// read makes batches of a dump's flows, those of a version together, until
// yield wants no more.
func (l *loader) read(dump io.Reader, yield func(batch) bool) {
	var own, loads batch
	kept := 0
	for flow, problem := range openflow.Flows(dump) {
		switch {
		case problem == nil:
		case kept < report.MaxItems:
			kept++
			own.problems = append(own.problems, *problem)
			continue
		case problem.Lost:
			own.more++
			continue
		default:
			continue
		}
		p := l.prepare(flow)
		queue := &own
		if p.version != l.version {
			queue = &loads
		}
		queue.flows = append(queue.flows, p)
		if len(queue.flows) < chunk {
			continue
		}
		if !yield(*queue) {
			return
		}
		*queue = batch{}
	}
	if yield(own) {
		yield(loads)
	}
}

// prepare mends a flow and finds the version in which the switch takes it as it was.
func (l *loader) prepare(flow openflow.Flow) pending {
	p := pending{Flow: flow, version: l.version}
	p.text, p.mends = openflow.Apply(flow.Text)
	if text, ok := l.words.better(flow); ok {
		p.text, _ = openflow.Apply(text)
		l.worded++
	}
	text, ok := l.guide.loads(flow)
	if !ok && l.guide == nil && saysLoad(flow) {
		text, ok = p.text, true
	}
	if v := l.bridge.loadVersion(); ok && v != "" && v != l.version {
		p.text, _ = openflow.Apply(text)
		p.version = v
	}
	return p
}

// send adds all flows of a list or, where one of them can't be, none.
func (l *loader) send(ctx context.Context, list []pending) error {
	text := func(i int) string { return list[i].text }
	spelling, err := l.node.withNames(ctx, l.bridge, len(list), text, func(option string) error { return l.sendAs(ctx, list, option) })
	if err == nil && spelling == named {
		l.spelling = named
	}
	return err
}

func (l *loader) sendAs(ctx context.Context, list []pending, spelling string) error {
	_, err := l.node.ofctlOptions(ctx, &linesOf{list: list}, append(bundle(list[0].version), spelling), l.bridge, "add-flows", "-")
	return err
}

// linesOf reads as the text of flows, a line each.
type linesOf struct {
	list []pending
	at   int // in the first one's text
}

func (r *linesOf) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.list) > 0 {
		text := r.list[0].text
		if r.at < len(text) {
			more := copy(p[n:], text[r.at:])
			n, r.at = n+more, r.at+more
			continue
		}
		p[n] = '\n'
		n, r.at, r.list = n+1, 0, r.list[1:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (l *loader) loaded(p pending) {
	l.has.add(p.Text)
	if p.Line == 0 {
		l.madeUp = append(l.madeUp, p.Flow)
	}
	if len(p.mends) > 0 {
		l.node.Report.Rewrite(l.node.item(l.bridge, workdir.Flows, p.Line, p.Text, strings.Join(p.mends, "; ")))
	}
}

// tally is a sum over flows in any order: two of the same seed are equal where
// the flows are. A switch has a million of them, so none is kept.
type tally struct {
	seed  maphash.Seed
	sum   uint64
	flows int
}

func newTally() tally { return tally{seed: maphash.MakeSeed()} }

func (t *tally) add(text string) {
	t.sum += t.hash(text)
	t.flows++
}

// hash is the same for flows that are the same. ovs-ofctl has no words for the
// dec_ttl with an empty list of controllers that OVN sends: it prints
// "dec_ttl()" and reads that as the plain action, which does the same. Dumps
// without statistics leave out a cookie of 0, and table 0.
func (t *tally) hash(text string) uint64 {
	text = strings.TrimPrefix(text, "cookie=0x0,")
	if strings.HasPrefix(text, "table=0,") {
		text = text[len("table=0,"):]
	} else if i := strings.Index(text, ",table=0,"); i > 0 && strings.HasPrefix(text, "cookie=") && !strings.Contains(text[:i], ",") {
		text = text[:i] + text[i+len(",table=0"):]
	}
	return maphash.String(t.seed, strings.ReplaceAll(text, "dec_ttl()", "dec_ttl"))
}

// readBack compares what the replica has with what was collected, text by text.
func (l *loader) readBack(ctx context.Context) error {
	n, b := l.node, l.bridge
	version := readBackVersion(b, n.dumpVersion(b, workdir.Flows), l.version)
	var err error
	have, back := tally{seed: l.has.seed}, n.pace("flows of "+b.Name+": reading back")
	for flow, problem := range n.dumpFlows(ctx, version, l.spelling, b, &err) {
		if problem == nil {
			have.add(flow.Text)
			back.tell(have.flows, int64(have.flows), int64(l.has.flows))
		}
	}
	if err != nil {
		return err
	}
	if have == l.has {
		n.Report.Counts(b.Name, workdir.Flows).Restored += have.flows
		return nil
	}
	return l.findDifferent(ctx, version)
}

// findDifferent counts the flows that the replica has and those that it says
// with other words. It asks for them once more, since none is kept.
func (l *loader) findDifferent(ctx context.Context, version string) error {
	n, b := l.node, l.bridge
	collected, err := l.collected()
	if err != nil {
		return err
	}
	counts := n.Report.Counts(b.Name, workdir.Flows)
	var strangers []string
	for flow, problem := range n.dumpFlows(ctx, version, l.spelling, b, &err) {
		if problem != nil {
			continue
		}
		key := l.has.hash(flow.Text)
		if collected[key] == 0 {
			strangers = append(strangers, flow.Text)
			continue
		}
		collected[key]--
		counts.Restored++
	}
	if err != nil {
		return err
	}
	for _, left := range collected {
		counts.Different += left
	}
	if counts.Different > 0 {
		n.Report.Remark(differs(b.Name, counts.Different, strangers))
	}
	return nil
}

// collected counts the flows that were loaded, by the hash of their text.
func (l *loader) collected() (map[uint64]int, error) {
	f, ok, err := l.node.recorded(l.node.Workdir.DumpFile(l.bridge.Name, workdir.Flows))
	if !ok {
		return nil, err
	}
	defer f.Close()
	aside := l.node.asideLines(l.bridge, workdir.Flows)
	list := map[uint64]int{}
	for flow, problem := range openflow.Flows(f) {
		if problem == nil && !aside[flow.Line] {
			list[l.has.hash(flow.Text)]++
		}
	}
	return list, nil
}

// differs names the first flows that the replica says with other words.
func differs(bridge string, count int, have []string) string {
	const most = 3
	text := bridge + ": " + strconv.Itoa(count) + " flows read back otherwise than they were collected"
	if len(have) > most {
		have = have[:most]
	}
	if len(have) > 0 {
		text += "; the replica has: " + strings.Join(have, " | ")
	}
	return text
}
