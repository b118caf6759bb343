// Package retrace says what the traces mean that people pasted into a ticket: where the packet ends, and by
// which rule. Where a replica runs, it asks the same again and shows the first difference.
package retrace

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/tracetext"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Verdict is what a trace says about the packet.
type Verdict string

// The verdicts.
const (
	Delivered    Verdict = "DELIVERED" // at least one copy leaves by a port
	Dropped      Verdict = "DROPPED"
	Controller   Verdict = "TO CONTROLLER"
	Undetermined Verdict = "UNDETERMINED" // what was pasted does not tell
)

// Document is what the traces of a set of nodes say.
type Document struct {
	Traces  []*Traced `json:"traces"`
	Remarks []string  `json:"remarks,omitempty"`
}

// Traced is what one trace says.
type Traced struct {
	Node    string `json:"node,omitempty"`
	Origin  string `json:"origin,omitempty"`  // the file, and the line in it
	Tool    string `json:"tool"`              // ofproto/trace or ovn-trace
	Command string `json:"command,omitempty"` // "" if it was not pasted

	Bridge string `json:"bridge,omitempty"`
	// InPort is the number or the name of the port as printed, with the name of a number where that is known.
	InPort string `json:"in_port,omitempty"`
	Packet string `json:"packet,omitempty"` // as the tool prints it

	Verdict Verdict `json:"verdict"`
	// Ends are the ends of the packet and its copies, in sentences.
	Ends  []string `json:"ends,omitempty"`
	Where *Place   `json:"where,omitempty"` // the last flow that decided
	// Reason is one of the reasons of package rules for a drop. Why is what the tool says about it.
	Reason string  `json:"reason,omitempty"`
	Why    string  `json:"why,omitempty"`
	Stages []Place `json:"stages,omitempty"`
	// Missing is why the verdict is UNDETERMINED; Lacks is what was not pasted.
	Missing []string `json:"missing,omitempty"`
	Lacks   []string `json:"lacks,omitempty"`
	Assumed []string `json:"assumed,omitempty"`
	Again   Again    `json:"again"`

	trace  tracetext.Trace
	result result
}

// Place is a flow that matched.
type Place struct {
	Pass     int    `json:"pass,omitempty"` // 0 for the first one
	Bridge   string `json:"bridge,omitempty"`
	Datapath string `json:"datapath,omitempty"` // of OVN
	Pipeline string `json:"pipeline,omitempty"`
	Table    int    `json:"table"`
	Flow     string `json:"flow,omitempty"` // "" if no flow matched
	Cookie   string `json:"cookie,omitempty"`
	Stage    string `json:"stage,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Actions  string `json:"actions,omitempty"`

	match string
}

// Again is what the replica says about the same packet.
type Again struct {
	// Result is "same" or "differs", "" if the replica was not asked.
	Result string `json:"result,omitempty"`
	// NotAsked is why it was not.
	NotAsked string `json:"not_asked,omitempty"`
	// Start is set where a replica that is started could be asked.
	Start   bool     `json:"start,omitempty"`
	Verdict Verdict  `json:"verdict,omitempty"`
	Ends    []string `json:"ends,omitempty"`
	// Recorded and Replica are the first stages that differ, nil for none on that side; What is what differs: flow,
	// actions or end.
	What     string `json:"what,omitempty"`
	Recorded *Place `json:"recorded,omitempty"`
	Replica  *Place `json:"replica,omitempty"`
	// Uncompared is what can't be compared.
	Uncompared []string `json:"uncompared,omitempty"`
}

// The results of Again.
const (
	Same    = "same"
	Differs = "differs"
)

// IsIncomplete reports whether a verdict is undetermined, or an output was not whole.
func (d *Document) IsIncomplete() bool {
	return slices.ContainsFunc(d.Traces, func(t *Traced) bool { return t.Verdict == Undetermined || len(t.Lacks) > 0 })
}

// Differs reports whether a replica says something else than a trace.
func (d *Document) Differs() bool {
	return slices.ContainsFunc(d.Traces, func(t *Traced) bool { return t.Again.Result == Differs })
}

// Replica is the replica of a node, in which ovn-trace runs.
type Replica interface {
	// Running returns its state.
	Running(ctx context.Context, wd *workdir.Dir) (replica.State, error)
	// Executor returns what runs programs beside it: with terminal, programs that get a terminal.
	Executor(ctx context.Context, wd *workdir.Dir, state replica.State, terminal bool) (runtime.Executor, error)
}

// Read reads the traces of all nodes of a snapshot, and asks the replicas that run.
func Read(ctx context.Context, selected *snapshot.Snapshot, replicaOf func(*snapshot.Node) Replica) (*Document, error) {
	document := &Document{Traces: []*Traced{}}
	deployments, remarks, err := selected.Deployments(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.CloseAll(deployments)
	document.Remarks = remarks
	for _, n := range selected.Nodes() {
		wd, err := n.Workdir()
		if err != nil {
			return nil, err
		}
		traces, err := recorded(wd)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if len(traces) == 0 {
			continue
		}
		read, err := openNode(ctx, n, replicaOf(n), wd, deployments)
		if err != nil {
			return nil, err
		}
		for _, trace := range traces {
			traced, err := read.read(ctx, trace)
			if err != nil {
				return nil, err
			}
			if traced.Again, err = read.again(ctx, traced); err != nil {
				return nil, err
			}
			document.Traces = append(document.Traces, traced)
		}
		read.close()
	}
	if len(document.Traces) == 0 {
		return nil, fault.Usagef("no ofproto/trace and no ovn-trace was collected: collect the text into which they were pasted")
	}
	return document, nil
}

// maxBytes is the size of the longest file with traces.
const maxBytes = 64 << 20

// recorded returns the traces of a node, in the order of the text in which they were pasted.
func recorded(wd *workdir.Dir) (all []tracetext.Trace, err error) {
	for _, name := range []string{workdir.RecordedTraces, workdir.RecordedLogicalTraces} {
		file, ok, err := wd.Collected(wd.Recorded(name))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(file, maxBytes))
		file.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, tracetext.Read(string(text))...)
	}
	slices.SortStableFunc(all, func(a, b tracetext.Trace) int {
		fileA, lineA, _ := cutOrigin(a.Origin)
		fileB, lineB, _ := cutOrigin(b.Origin)
		if fileA != fileB {
			return strings.Compare(fileA, fileB)
		}
		return lineA - lineB
	})
	return all, nil
}

// cutOrigin splits "ticket.md, line 12".
func cutOrigin(origin string) (file string, line int, ok bool) {
	file, number, ok := strings.Cut(origin, ", line ")
	_, _ = fmt.Sscanf(number, "%d", &line)
	return file, line, ok
}
