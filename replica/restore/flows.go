package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// chunk is how many flows go to the switch in one bundle. Bundles of 1,000 and
// more cost about the same per flow; a smaller one is bisected faster when it fails.
const chunk = 2000

// restoreFlows adds every flow that can be added, and names every other.
func restoreFlows(ctx context.Context, n *Node, o *outcome) error {
	for _, b := range n.Bridges {
		f, ok, err := n.openDump(b, workdir.Flows)
		if err != nil {
			return err
		}
		if !ok {
			o.note(Unknown, "%s: no flows were collected", b.Name)
			continue
		}
		f.Close()
		version, err := n.speaks(ctx, b)
		if err != nil {
			return err
		}
		l := &loader{node: n, bridge: b, version: version, seed: maphash.MakeSeed(), collected: map[uint64]int{}}
		if err := l.load(ctx); err != nil {
			return err
		}
		if err := l.readBack(ctx); err != nil {
			return err
		}
		o.note(Restored, "")
	}
	return nil
}

// loader pushes the flows of one bridge.
type loader struct {
	node    *Node
	bridge  *Bridge
	version string
	pending []pending // flows to add in version
	loads   []pending // flows to add in the bridge's loadVersion
	guide   guide
	// collected counts the flows that were loaded, by the hash of their text,
	// for comparing with what the replica says it has.
	seed      maphash.Seed
	collected map[uint64]int
	others    map[string]string // flows of other versions' dumps by key; read when first needed
	words     words             // what tells flows better than the dump; nil for none
	worded    int               // flows that took their actions from there
	places    []openflow.Flow   // the flows that were loaded, of a damaged dump
	hurt      bool              // the dump is damaged
}

// pending is a flow on its way to the switch.
type pending struct {
	openflow.Flow
	text    string // as it is sent: mended
	version string // the OpenFlow version in which it is sent
	mends   []string
}

func (l *loader) load(ctx context.Context) error {
	f, ok, err := l.node.recorded(l.node.Workdir.DumpFile(l.bridge.Name, workdir.Flows))
	if !ok {
		return err
	}
	defer f.Close()
	if l.guide, err = l.node.readGuide(l.bridge); err != nil {
		return err
	}
	if l.words, err = l.readWords(); err != nil {
		return err
	}
	problems, err := l.check(f)
	if err != nil {
		return err
	}
	counts := l.node.Report.counts(l.bridge.Name, workdir.Flows)
	for flow, problem := range openflow.Flows(f) {
		if problem != nil {
			continue
		}
		counts.Collected++
		if err := l.add(ctx, flow); err != nil {
			return err
		}
	}
	if l.hurt {
		if err := l.damaged(problems); err != nil {
			return err
		}
		if err := l.supplement(ctx); err != nil {
			return err
		}
	}
	if l.worded > 0 {
		l.node.Report.Remarks = append(l.node.Report.Remarks, fmt.Sprintf("%s: %d flows take their actions from bridge/dump-flows or a dump of a higher OpenFlow version, which say more than the dump", l.bridge.Name, l.worded))
	}
	if err := l.flush(ctx, &l.pending); err != nil {
		return err
	}
	return l.flush(ctx, &l.loads)
}

// check finds the lines of the dump that can't be used, and goes back to its beginning.
func (l *loader) check(f *os.File) ([]openflow.Problem, error) {
	var problems []openflow.Problem
	for _, problem := range openflow.Flows(f) {
		if problem != nil {
			problems = append(problems, *problem)
			l.hurt = l.hurt || problem.Lost
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return problems, err
}

// add queues a flow for the version in which the switch takes it as it was.
func (l *loader) add(ctx context.Context, flow openflow.Flow) error {
	p := pending{Flow: flow, version: l.version}
	p.text, p.mends = openflow.Apply(flow.Text)
	queue := &l.pending
	if text, ok := l.words.better(flow); ok {
		p.text, _ = openflow.Apply(text)
		l.worded++
	}
	text, ok := l.guide.loads(flow)
	if !ok && l.guide == nil && saysLoad(flow) {
		text, ok = p.text, true
	}
	if v := l.bridge.loadVersion(); ok && v != "" && v != l.version {
		p.text, p.version = text, v
		queue = &l.loads
	}
	*queue = append(*queue, p)
	if len(*queue) < chunk {
		return nil
	}
	return l.flush(ctx, queue)
}

func (l *loader) flush(ctx context.Context, queue *[]pending) error {
	list := *queue
	*queue = list[:0]
	return l.push(ctx, list)
}

// push sends a list of flows. Where the switch refuses one of them it takes
// none, so the list is split until the bad one stands alone.
func (l *loader) push(ctx context.Context, list []pending) error {
	if len(list) == 0 {
		return nil
	}
	err := l.send(ctx, list)
	if err == nil {
		for _, p := range list {
			l.loaded(p)
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(list) == 1 {
		return l.rescue(ctx, list[0], err)
	}
	middle := len(list) / 2
	if bad, ok := badLine(err); ok && bad < len(list) {
		// ovs-ofctl named the line: no need to search.
		if err := l.push(ctx, list[:bad]); err != nil {
			return err
		}
		if err := l.push(ctx, list[bad:bad+1]); err != nil {
			return err
		}
		return l.push(ctx, list[bad+1:])
	}
	if err := l.push(ctx, list[:middle]); err != nil {
		return err
	}
	return l.push(ctx, list[middle:])
}

// badLine reads the number of the line that ovs-ofctl could not parse, from 0.
func badLine(err error) (int, bool) {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return 0, false
	}
	m := atLine.FindStringSubmatch(failed.Stderr)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n - 1, err == nil && n > 0
}

func (l *loader) send(ctx context.Context, list []pending) error {
	var text bytes.Buffer
	for _, p := range list {
		text.WriteString(p.text)
		text.WriteByte('\n')
	}
	_, err := l.node.ofctlOptions(ctx, &text, bundle(list[0].version), l.bridge, "add-flows", "-")
	return err
}

// rescue tries other ways for a flow that can't be added as it is, and puts it
// aside with the reason if they fail as well.
func (l *loader) rescue(ctx context.Context, p pending, cause error) error {
	if err := l.readOthers(); err != nil {
		return err
	}
	for _, w := range l.otherWays(p) {
		if w.text == "" || w.text == p.text && w.version == p.version {
			continue
		}
		again := pending{Flow: p.Flow, text: w.text, version: w.version, mends: []string{w.how + ", since " + reason(cause)}}
		if l.send(ctx, []pending{again}) == nil {
			l.loaded(again)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	l.node.Report.setAside(l.node.item(l.bridge, workdir.Flows, p.Line, p.Text, reason(cause)))
	return nil
}

// way is another way to add a flow.
type way struct{ text, version, how string }

// otherWays are the dump's own words where others were tried, those of another
// OpenFlow version's dump, and OpenFlow 1.0, in which a switch takes actions
// that lack their prerequisites (strip_vlan without a VLAN in the match).
func (l *loader) otherWays(p pending) []way {
	own, _ := openflow.Apply(p.Text)
	other, _ := openflow.Apply(l.others[p.Key()])
	ways := []way{{own, l.version, "taken as it was dumped"}, {other, l.version, "taken from another OpenFlow version's dump"}}
	if allowed(l.bridge.Protocols, "OpenFlow10") {
		// OpenFlow 1.0 has no words for the flag that it sets on every flow.
		ways = append(ways, way{strings.Replace(own, "reset_counts,", "", 1), "OpenFlow10", "added with OpenFlow 1.0"})
	}
	return ways
}

// readOthers reads the flow dumps of the other OpenFlow versions, the worst
// first so that the best one's words win.
func (l *loader) readOthers() error {
	if l.others != nil {
		return nil
	}
	l.others = map[string]string{}
	all := versions()
	for i := len(all) - 1; i >= 0; i-- {
		f, ok, err := l.node.recorded(l.node.Workdir.OtherDump(l.bridge.Name, workdir.Flows, all[i]))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for flow, problem := range openflow.Flows(f) {
			if problem == nil {
				l.others[flow.Key()] = flow.Text
			}
		}
		f.Close()
	}
	return nil
}

func (l *loader) loaded(p pending) {
	l.collected[l.hash(p.Text)]++
	if l.hurt {
		l.places = append(l.places, p.Flow)
	}
	if len(p.mends) > 0 {
		l.node.Report.mended(l.node.item(l.bridge, workdir.Flows, p.Line, p.Text, strings.Join(p.mends, "; ")))
	}
}

// hash is the same for flows that are the same. ovs-ofctl has no words for the
// dec_ttl with an empty list of controllers that OVN sends: it prints
// "dec_ttl()" and reads that as the plain action, which does the same.
func (l *loader) hash(text string) uint64 {
	return maphash.String(l.seed, strings.ReplaceAll(text, "dec_ttl()", "dec_ttl"))
}

// readBack compares what the replica has with what was collected, text by text.
func (l *loader) readBack(ctx context.Context) error {
	if l.hurt {
		return l.readBackPlaces(ctx)
	}
	n, b := l.node, l.bridge
	version := readBackVersion(b, n.dumpVersion(b, workdir.Flows), l.version)
	out, err := n.ofctl(ctx, nil, version, b, "dump-flows")
	if err != nil {
		return err
	}
	counts := n.Report.counts(b.Name, workdir.Flows)
	var strangers []string
	for flow, problem := range openflow.Flows(bytes.NewReader(out)) {
		if problem != nil {
			continue
		}
		key := l.hash(flow.Text)
		if l.collected[key] == 0 {
			strangers = append(strangers, flow.Text)
			continue
		}
		l.collected[key]--
		counts.Restored++
	}
	for _, left := range l.collected {
		counts.Different += left
	}
	if counts.Different > 0 {
		n.Report.Remarks = append(n.Report.Remarks, differs(b.Name, counts.Different, strangers))
	}
	return nil
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
