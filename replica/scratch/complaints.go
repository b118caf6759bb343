package scratch

import (
	"bytes"
	"context"
	"slices"

	"ovs-offline/internal/daemonlog"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Complaint is a warning or an error that ovn-northd or an ovn-controller logged about what it computes.
type Complaint struct {
	Node    string `json:"node,omitempty"` // "" for ovn-northd
	Program string `json:"program"`
	Text    string `json:"text"`
}

// computing is a program that computes flows.
type computing struct {
	node string // "" for ovn-northd
	runtime.Daemon
	rt runtime.Runtime
}

// computing returns ovn-northd, if it runs, and the ovn-controllers.
func (s *Scratch) computing() (all []computing) {
	if s.nb != nil {
		all = append(all, computing{"", northd(s.options.Dir), s.options.central()})
	}
	for _, node := range s.options.Nodes {
		all = append(all, computing{node.Name, s.nodes[node.Name].controller(), s.options.Runtime})
	}
	return all
}

// Recompute makes the programs compute everything once more, and waits until they have. Without it, the flows can depend on
// what the databases held before: an ovn-controller keeps the flows of a datapath after the last port of that datapath is gone.
func (s *Scratch) Recompute(ctx context.Context) error {
	for _, d := range s.computing() {
		_, _ = daemon.Ask(ctx, d.rt, d.RunDir, d.Program, "inc-engine/recompute") // an old release has no such command
	}
	return s.Wait(ctx)
}

// Complaints returns what ovn-northd and the ovn-controllers logged, each text once. They compute everything once
// more without a limit on the lines that they log, so that none is left out.
func (s *Scratch) Complaints(ctx context.Context) ([]Complaint, error) {
	all := s.computing()
	began := map[string]int{} // the lines of a log before that
	for _, d := range all {
		_, err := daemonlog.Read(ctx, d.Log, d.Program, daemonlog.Options{}, func(line *daemonlog.Line) error {
			began[d.Log] = line.Number
			return nil
		})
		if err != nil {
			return nil, err
		}
		_, _ = daemon.Ask(ctx, d.rt, d.RunDir, d.Program, "vlog/disable-rate-limit") // an old release has no such command
	}
	if err := s.Recompute(ctx); err != nil {
		return nil, err
	}
	var found []Complaint
	for _, d := range all {
		_, err := daemonlog.Read(ctx, d.Log, d.Program, daemonlog.Options{}, func(line *daemonlog.Line) error {
			one := Complaint{d.node, d.Program, string(line.Text)}
			if isComplaint(line, line.Number > began[d.Log]) && !slices.Contains(found, one) {
				found = append(found, one)
			}
			return nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// isComplaint reports whether a line is about what the databases hold, and not about time, memory and connections.
// What is logged before all is computed once more can be about what was not there yet, as a tunnel. What the
// switch refuses, though, ovn-controller logs once, and as information. So do all programs log an address that they refuse
// (lib/ovn-util.c of OVN).
func isComplaint(line *daemonlog.Line, again bool) bool {
	if bytes.Contains(line.Text, []byte("OpenFlow error")) {
		return true
	}
	others := []string{"timeval", "poll_loop", "coverage", "memory", "reconnect", "jsonrpc", "stream_ssl", "stream_fd", "fatal_signal", "daemon_unix", "vlog", "ovsdb_cs", "rconn", "ovs_rcu"}
	grave := line.Level >= daemonlog.Warn || bytes.HasPrefix(line.Text, []byte("invalid syntax"))
	return again && grave && !slices.Contains(others, string(line.Module))
}
