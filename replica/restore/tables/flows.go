package tables

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
)

const (
	// chunk is the number of flows in a bundle. Bundles of 10,000, two at a time,
	// take as long as one bundle of all flows, and bundles of 2,000 one after the
	// other twice as long; memory grows with the bundle, here and in ovs-vswitchd.
	chunk = 10000
	// maxSent is the number of bundles that are sent at the same time: ovs-ofctl
	// reads the flows of one while the switch takes another. The order of bundles
	// does not matter, because no two flows of a switch have the same table,
	// priority and match. If a dump has a flow twice, far apart, either may win.
	maxSent = 2
)

// Flows adds every flow that can be added, and reports the others. Meanwhile it reads
// the other tables back, and then compares them with what was collected.
func (t *Tables) Flows(ctx context.Context, outcome *report.Outcome) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for _, loaded := range t.loaded {
			if err := loaded.read(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error { return t.restoreFlows(ctx, outcome) })
	if err := group.Wait(); err != nil {
		return err
	}
	for _, loaded := range t.loaded {
		loaded.compare()
	}
	return nil
}

func (t *Tables) restoreFlows(ctx context.Context, outcome *report.Outcome) error {
	for _, bridge := range t.Bridges {
		table, err := t.table(ctx, bridge, flowTable)
		if err != nil {
			return err
		}
		file, ok, err := table.open()
		if err != nil {
			return err
		}
		if !ok {
			outcome.Note(report.Unknown, "%s: no flows were collected", bridge.Name)
			continue
		}
		err = table.restoreDump(ctx, file)
		file.Close()
		if err != nil {
			return err
		}
		outcome.Note(report.Restored, "")
	}
	return nil
}

func (t *table) restoreDump(ctx context.Context, dump *os.File) error {
	held, err := t.Facts.held(ctx, t.bridge.Name)
	if err != nil {
		return err
	}
	defer held.loads.close()
	loader := &loader{table: t, held: held, loaded: newTally()}
	for _, version := range openflow.Versions() {
		if loader.loadVersion == 0 && version < openflow.OpenFlow15 && version.In(t.bridge.Protocols) {
			loader.loadVersion = version
		}
	}
	if err := loader.readFuller(ctx); err != nil {
		return err
	}
	defer closeAll(loader.fuller)
	defer func() { closeAll(loader.others) }()
	if err := loader.load(ctx, dump); err != nil {
		return err
	}
	loader.remarkUntried()
	if loader.damaged() {
		return loader.restoreDamaged(ctx)
	}
	loader.remarkFuller()
	if err := loader.remarkActions(ctx); err != nil {
		return err
	}
	if loader.loaded.flows > chunk {
		debug.FreeOSMemory() // frees the memory of loading; reading back needs as much again
	}
	return loader.readBack(ctx)
}

// loader loads the flows of one bridge.
type loader struct {
	*table
	loadVersion openflow.Version // the newest in which ovs-ofctl sends a load as such; 0 for none
	held        held
	loaded      tally

	fuller     []*index // other sources with fuller actions, the best first
	fullerUsed int      // flows whose actions come from there
	others     []*index // dumps of other OpenFlow versions, the best first; nil until one is needed
	unknown    unknownWords

	problems []openflow.Problem // the first lines of the dump that cannot be used
	more     int                // further lines that held data
	added    []openflow.Flow    // flows from other sources that a damaged dump lacks
}

// batch is a part of a dump: flows to add in one OpenFlow version, and problems.
type batch struct {
	flows    []entry
	problems []openflow.Problem
	more     int   // problems that held data and are not in the list
	end      int64 // the offset of the last flow
}

// load reads the next flows while the switch takes the last ones.
func (l *loader) load(ctx context.Context, dump *os.File) error {
	info, err := dump.Stat()
	if err != nil {
		return err
	}
	adding := l.pace(l.bridge, "adding")
	ctx, stop := context.WithCancel(ctx)
	batches := make(chan batch)
	go func() {
		defer close(batches)
		l.read(dump, func(batch batch) bool {
			select {
			case batches <- batch:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	var sent []sending
	defer func() {
		stop()
		for range batches { // the reader uses the dump until it ends
		}
		for _, sending := range sent {
			<-sending.done
		}
	}()
	finishFirst := func() error {
		sending := sent[0]
		sent = sent[1:]
		if err := l.finish(ctx, sending); err != nil {
			return err
		}
		adding.add(len(sending.flows), sending.end, info.Size())
		return nil
	}
	for batch := range batches {
		l.problems, l.more = append(l.problems, batch.problems...), l.more+batch.more
		l.counts().Collected += len(batch.flows)
		if len(batch.flows) > 0 {
			sent = append(sent, l.start(ctx, batch))
		}
		if len(sent) == maxSent {
			if err := finishFirst(); err != nil {
				return err
			}
		}
	}
	for len(sent) > 0 {
		if err := finishFirst(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sending is a list on its way to the switch.
type sending struct {
	batch
	done chan error
}

func (l *loader) start(ctx context.Context, batch batch) sending {
	sending := sending{batch, make(chan error, 1)}
	go func() { sending.done <- l.sendAs(ctx, batch.flows, NoNames) }()
	return sending
}

// finish waits for a list. If a flow of it was rejected, none was added, and the
// list is pushed again.
func (l *loader) finish(ctx context.Context, sending sending) error {
	err := <-sending.done
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return l.push(ctx, sending.flows)
	}
	for _, entry := range sending.flows {
		l.count(entry)
	}
	return nil
}

// count counts a flow that was added.
func (l *loader) count(entry entry) {
	l.loaded.add(entry.collected)
	if entry.line == 0 {
		l.added = append(l.added, openflow.Flow{Text: entry.collected})
	}
	l.reportRewrite(entry)
}

// read yields the flows of a dump in batches, each of one OpenFlow version.
func (l *loader) read(dump io.Reader, yield func(batch) bool) {
	var own, loads batch
	listed := 0
	for flow, problem := range openflow.Flows(dump) {
		if problem != nil {
			if listed++; listed <= report.MaxItems {
				own.problems = append(own.problems, *problem)
			} else if problem.Lost {
				own.more++
			}
			continue
		}
		e := l.prepareFlow(flow)
		queue := &own
		if e.version != l.version {
			queue = &loads
		}
		if queue.flows == nil {
			queue.flows = make([]entry, 0, chunk)
		}
		queue.flows, queue.end = append(queue.flows, e), flow.At
		if len(queue.flows) == chunk {
			if !yield(*queue) {
				return
			}
			*queue = batch{}
		}
	}
	if yield(own) {
		yield(loads)
	}
}

// prepareFlow finds the text and the OpenFlow version in which the switch takes a
// flow as the live switch held it.
func (l *loader) prepareFlow(flow openflow.Flow) entry {
	entry := l.prepare(flow.Line, flow.Text)
	if text, ok := l.fullerText(flow); ok {
		entry.text, _ = openflow.Rewrite(text)
		l.fullerUsed++
	}
	if l.loadVersion == 0 || l.loadVersion == l.version {
		return entry
	}
	if !l.held.collected && printsLoad(flow) {
		entry.version = l.loadVersion
	} else if text, ok := findActions(flow, l.held.loads); ok {
		entry.text, _ = openflow.Rewrite(text)
		entry.version = l.loadVersion
	}
	return entry
}

// wholeLoad matches the load of a whole register. Dumps of OpenFlow 1.2 to 1.4
// print no set_field so.
var wholeLoad = lazyregexp.New(`(?:=|,)load:[^,()]*->[A-Za-z0-9_]+\[\]`)

// printsLoad reports whether a dump itself shows that the switch held a load.
func printsLoad(flow openflow.Flow) bool {
	if !strings.Contains(flow.Text, loadWord) {
		return false
	}
	actions := "=" + flow.Actions()
	return wholeLoad.MatchString(actions) && !strings.Contains(actions, "learn(")
}

// tally is a sum over flows in any order: two sums of the same seed are equal if
// the flows are. A switch can have a million flows, so it keeps none.
type tally struct {
	seed  maphash.Seed
	sum   uint64
	flows int
	odd   int // flows with an odd cookie
}

func newTally() tally { return tally{seed: maphash.MakeSeed()} }

func (t *tally) add(text string) {
	t.sum += flowHash(t.seed, text)
	t.flows++
	if hasOddCookie(text) {
		t.odd++
	}
}

func hasOddCookie(text string) bool {
	cookie, found := strings.CutPrefix(text, "cookie=0x")
	end := strings.IndexAny(cookie, ", ")
	return found && end > 0 && strings.IndexByte("13579bdf", cookie[end-1]) >= 0
}

// silentDecTTL is how ovs-ofctl prints the dec_ttl with an empty list of controllers
// that OVN sends. ovs-ofctl cannot send it: it reads this text as a plain dec_ttl.
const silentDecTTL = "dec_ttl()"

// remarkActions remarks which actions a replica translates in another way than the node.
func (l *loader) remarkActions(ctx context.Context) error {
	dumped, err := l.Facts.dumped(ctx, l.bridge.Name)
	if dumped.queues && l.bridge.OfKernel {
		// The handle of queue n is 1:(n+1) (lib/dpif-netlink.c, dpif_netlink_queue_to_priority).
		l.remark("flows choose queues: for queue N the datapath actions have skb_priority(N), where the node's have skb_priority(0x10001 + N)")
	}
	if dumped.silentTTL {
		l.remark("ovs-ofctl loads %s as dec_ttl: for a packet with TTL 1 a trace sends a message to the controller, where the node only dropped the packet", silentDecTTL)
	}
	return err
}

// flowHash returns the same value for all texts of the same flow: silentDecTTL is read back
// as dec_ttl. Dumps without statistics leave out a cookie of 0, and table 0.
func flowHash(seed maphash.Seed, text string) uint64 {
	text = strings.TrimPrefix(text, "cookie=0x0,")
	if strings.HasPrefix(text, "table=0,") {
		text = text[len("table=0,"):]
	} else if i := strings.Index(text, ",table=0,"); i > 0 && strings.HasPrefix(text, "cookie=") && !strings.Contains(text[:i], ",") {
		text = text[:i] + text[i+len(",table=0"):]
	}
	return maphash.String(seed, strings.ReplaceAll(text, silentDecTTL, "dec_ttl"))
}

// readBack compares the text of the replica's flows with the text of the collected ones.
func (l *loader) readBack(ctx context.Context) error {
	version := l.readBackVersion()
	have, err := l.tallyReplica(ctx, version)
	if err != nil {
		return err
	}
	if have == l.loaded {
		l.counts().Restored += have.flows
		return nil
	}
	return l.findDifferent(ctx, version)
}

// minHalf is the number of flows with even and with odd cookies from which on
// they are dumped side by side by two runs of ovs-ofctl.
const minHalf = 2000

// tallyReplica returns the tally of the replica's flows.
func (l *loader) tallyReplica(ctx context.Context, version openflow.Version) (tally, error) {
	filters := [][]string{nil}
	if min(l.loaded.odd, l.loaded.flows-l.loaded.odd) >= minHalf {
		filters = [][]string{{"cookie=0/1"}, {"cookie=1/1"}}
	}
	reading := l.pace(l.bridge, "reading back")
	tallies := make([]tally, len(filters))
	var group errgroup.Group
	var read atomic.Int64
	for i, filter := range filters {
		group.Go(func() error {
			part := tally{seed: l.loaded.seed}
			err := l.eachPrinted(ctx, version, func(flow openflow.Flow) {
				part.add(flow.Text)
				if part.flows%paceStep == 0 {
					reading.add(paceStep, read.Add(paceStep), int64(l.loaded.flows))
				}
			}, filter...)
			tallies[i] = part
			return err
		})
	}
	err := group.Wait()
	all := tally{seed: l.loaded.seed}
	for _, part := range tallies {
		all.sum, all.flows, all.odd = all.sum+part.sum, all.flows+part.flows, all.odd+part.odd
	}
	return all, err
}

// eachPrinted calls do for each flow of the replica, or for each one that filter selects.
func (l *loader) eachPrinted(ctx context.Context, version openflow.Version, do func(openflow.Flow), filter ...string) error {
	return readOutput(func(w io.Writer) error { return l.printTo(ctx, version, w, filter...) }, func(out io.Reader) {
		for flow, problem := range openflow.Flows(out) {
			if problem == nil {
				do(flow)
			}
		}
	})
}

// findDifferent counts the flows that the replica has and the flows that it prints
// differently. It dumps the flows again, because none is kept.
func (l *loader) findDifferent(ctx context.Context, version openflow.Version) error {
	collected := map[uint64]int{} // number of flows by hash
	counts := l.counts()
	seed := l.loaded.seed
	form, err := l.comparable(ctx)
	if err != nil {
		return err
	}
	_, err = eachFlow(ctx, l.path(), nil, func(flow openflow.Flow, problem *openflow.Problem) {
		if problem == nil && !counts.IsRejected(flow.Line) {
			collected[flowHash(seed, form(flow))]++
		}
	})
	if err != nil {
		return err
	}
	const maxNamed = 3
	var unexpected []string // the first flows that were not collected so
	err = l.eachPrinted(ctx, version, func(flow openflow.Flow) {
		key := flowHash(seed, form(flow))
		switch {
		case collected[key] > 0:
			collected[key]--
			counts.Restored++
		case len(unexpected) < maxNamed:
			unexpected = append(unexpected, flow.Text)
		}
	})
	if err != nil {
		return err
	}
	for _, left := range collected {
		counts.Different += left
	}
	if counts.Different > 0 {
		text := fmt.Sprintf("%d flows read back differently", counts.Different)
		if len(unexpected) > 0 {
			text += "; the replica has: " + strings.Join(unexpected, " | ")
		}
		l.remark("%s", text)
	}
	return nil
}

// damaged reports whether lines of the dump that cannot be used held data.
func (l *loader) damaged() bool {
	return l.more > 0 || slices.ContainsFunc(l.problems, func(problem openflow.Problem) bool { return problem.Lost })
}
