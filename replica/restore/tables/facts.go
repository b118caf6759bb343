package tables

import (
	"context"
	"hash/maphash"
	"os"
	"strings"
	"sync"

	"ovs-offline/internal/interrupt"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// Facts holds the properties of each bridge's collected flows that the steps need. A
// bridge's flow dump and its bridge/dump-flows are read once each, when they are first
// asked for. The methods may be called concurrently.
type Facts struct {
	wd       *workdir.Dir
	dumps    perBridge[dumped]
	switches perBridge[held]
}

// ReadFacts returns the facts about the flows of a workdir, and starts to read
// the facts of the bridges with flow dumps in the background.
func ReadFacts(ctx context.Context, wd *workdir.Dir) *Facts {
	facts := &Facts{wd: wd}
	go func() {
		bridges, _ := wd.DumpedBridges(workdir.Flows)
		for _, bridge := range bridges { // errors are returned where the facts are asked for
			if ctx.Err() == nil {
				_, _ = facts.held(ctx, bridge)
				_, _ = facts.dumped(ctx, bridge)
			}
		}
	}()
	return facts
}

// perBridge holds a value for each bridge, which is read once.
type perBridge[T any] struct {
	mu     sync.Mutex
	values map[string]func() (T, error)
}

func (p *perBridge[T]) get(bridge string, read func() (T, error)) (T, error) {
	p.mu.Lock()
	if p.values == nil {
		p.values = map[string]func() (T, error){}
	}
	value := p.values[bridge]
	if value == nil {
		value = sync.OnceValues(read)
		p.values[bridge] = value
	}
	p.mu.Unlock()
	return value()
}

// dumped holds the facts from a bridge's flow dump.
type dumped struct {
	collected bool
	floods    bool // a flow has the action NORMAL
	damaged   bool // some lines cannot be used
	silentTTL bool // a flow has the action silentDecTTL
	queues    bool // a flow has an action that chooses a queue
	named     bool // a flow names a table by something else than its number
	refs      openflow.References
}

func (f *Facts) dumped(ctx context.Context, bridge string) (dumped, error) {
	return f.dumps.get(bridge, func() (dumped, error) { return readDumped(ctx, f.wd.DumpFile(bridge, workdir.Flows)) })
}

// Flood reports whether any flow of a bridge floods packets by NORMAL. It
// reports true for a bridge whose flows were not collected.
func (f *Facts) Flood(ctx context.Context, bridge string) (bool, error) {
	dumped, err := f.dumped(ctx, bridge)
	return dumped.floods || !dumped.collected && err == nil, err
}

func readDumped(ctx context.Context, path string) (dumped dumped, err error) {
	dumped.refs.Add("") // makes its maps
	dumped.collected, err = eachFlow(ctx, path, func(line string) bool {
		dumped.named = dumped.named || openflow.NamesTable(line)
		dumped.silentTTL = dumped.silentTTL || strings.Contains(line, silentDecTTL)
		dumped.queues = dumped.queues || strings.Contains(line, "set_queue:") || strings.Contains(line, "enqueue:")
		return openflow.HasReference(line) || strings.Contains(line, "NORMAL") || strings.Contains(line, "***decode error")
	}, func(flow openflow.Flow, problem *openflow.Problem) {
		if problem != nil {
			dumped.damaged = dumped.damaged || problem.Lost
			return
		}
		dumped.refs.Add(flow.Text)
		dumped.floods = dumped.floods || strings.Contains(flow.Text, "NORMAL") && strings.Contains(flow.Actions(), "NORMAL")
	})
	return dumped, err
}

// Tables returns the flow tables that the flows of a bridge name, if one of them is a name: those of the flows in the order of the dump,
// then those of their actions.
func (f *Facts) Tables(ctx context.Context, bridge string) (list []string, err error) {
	dumped, err := f.dumped(ctx, bridge)
	if !dumped.named || err != nil {
		return nil, err
	}
	seen, met, inActions := map[string]bool{}, map[string]bool{}, []string{}
	_, err = eachFlow(ctx, f.wd.DumpFile(bridge, workdir.Flows), nil, func(flow openflow.Flow, problem *openflow.Problem) {
		if problem != nil {
			return
		}
		tables := openflow.Tables(flow.Text)
		if own := strings.Index(flow.Text, "table="); len(tables) > 0 && own >= 0 && own < strings.Index(flow.Text, "actions=") {
			if !seen[tables[0]] {
				list = append(list, tables[0])
			}
			seen[tables[0]], tables = true, tables[1:]
		}
		for _, table := range tables {
			if !met[table] {
				met[table], inActions = true, append(inActions, table)
			}
		}
	})
	for _, table := range inActions {
		if !seen[table] {
			seen[table], list = true, append(list, table)
		}
	}
	return list, err
}

// eachFlow calls do for the flows and problems in the lines of a collected file
// that want accepts, nil for all; ok is false if it was not collected.
func eachFlow(ctx context.Context, path string, want func(line string) bool, do func(openflow.Flow, *openflow.Problem)) (ok bool, err error) {
	file, ok, err := workdir.OpenCollected(path)
	if !ok {
		return false, err
	}
	defer file.Close()
	if want == nil {
		want = func(string) bool { return true }
	}
	for flow, problem := range openflow.FlowsIn(interrupt.Reader(ctx, file), want) {
		do(flow, problem)
	}
	return true, ctx.Err()
}

// held holds the facts from a bridge's bridge/dump-flows, which prints the flows as the
// switch holds them, including flows that OpenFlow cannot address.
type held struct {
	collected bool
	hidden    hiddenFlows
	refs      openflow.References
	loads     *index // of the flows with load actions
}

func (f *Facts) held(ctx context.Context, bridge string) (held, error) {
	return f.switches.get(bridge, func() (held, error) {
		return readHeld(ctx, f.wd.BridgeRecorded(bridge, workdir.RecordedBridgeFlows))
	})
}

func readHeld(ctx context.Context, path string) (held held, err error) {
	held.refs.Add("")
	held.loads = newIndex(path, openflow.Flow.Criteria)
	held.collected, err = eachFlow(ctx, path, func(line string) bool {
		return strings.Contains(line, loadWord) || openflow.HasReference(line) || isHidden(line)
	}, func(flow openflow.Flow, problem *openflow.Problem) {
		if problem != nil {
			return
		}
		held.refs.Add(flow.Text)
		held.hidden.add(flow)
		if hasLoad(flow.Text) {
			held.loads.add(flow)
		}
	})
	return held, err
}

const loadWord = "load:"

// hasLoad reports whether a flow has a load action. One inside learn() does not
// count: the flow itself holds a specification there.
//
// OpenFlow 1.5 dumps print every load as set_field, which does the same, but a
// trace prints it as the switch holds it.
func hasLoad(text string) bool {
	for found := true; found; {
		var before string
		if before, _, text, found = openflow.CutLearn(text); strings.Contains(before, loadWord) {
			return true
		}
	}
	return false
}

// index finds flows of a collected file by a key. It holds only the hash of each
// key and the flow's offset in the file: a switch can have a million flows.
type index struct {
	path string
	key  func(openflow.Flow) openflow.Key
	seed maphash.Seed
	at   map[uint64]int64
	file *os.File // nil until a flow is read
}

func newIndex(path string, key func(openflow.Flow) openflow.Key) *index {
	return &index{path: path, key: key, seed: maphash.MakeSeed(), at: map[uint64]int64{}}
}

func (x *index) add(flow openflow.Flow) { x.at[maphash.Comparable(x.seed, x.key(flow))] = flow.At }

func (x *index) has(flow openflow.Flow) bool {
	_, ok := x.at[maphash.Comparable(x.seed, x.key(flow))]
	return ok
}

// indexFlows indexes all flows of a collected file. The index is empty if the
// file was not collected.
func indexFlows(ctx context.Context, path string, key func(openflow.Flow) openflow.Key) (*index, error) {
	index := newIndex(path, key)
	_, err := eachFlow(ctx, path, nil, func(flow openflow.Flow, problem *openflow.Problem) {
		if problem == nil {
			index.add(flow)
		}
	})
	return index, err
}

// find returns the flow with a key.
func (x *index) find(key openflow.Key) (openflow.Flow, bool) {
	at, ok := x.at[maphash.Comparable(x.seed, key)]
	if !ok {
		return openflow.Flow{}, false
	}
	if x.file == nil {
		file, err := os.Open(x.path)
		if err != nil {
			return openflow.Flow{}, false
		}
		x.file = file
	}
	flow, err := openflow.FlowAt(x.file, at)
	return flow, err == nil && x.key(flow) == key
}

// close closes the file. find opens it again.
func (x *index) close() {
	if x.file != nil {
		x.file.Close()
		x.file = nil
	}
}
