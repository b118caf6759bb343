package replica

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Status is how a replica is.
type Status struct {
	Workdir string         `json:"workdir"`
	Runtime string         `json:"runtime"`
	Ready   bool           `json:"ready"` // every daemon answers, and no flow was lost
	Daemons []DaemonStatus `json:"daemons"`
	Flows   []FlowStatus   `json:"flows,omitempty"`
}

// DaemonStatus is how one daemon is.
type DaemonStatus struct {
	Role      string    `json:"role"`
	Running   bool      `json:"running"`
	Answers   bool      `json:"answers"` // it answered a command just now
	Since     time.Time `json:"since,omitzero"`
	PID       int       `json:"pid,omitempty"` // as seen on this host
	Container string    `json:"container,omitempty"`
	Version   string    `json:"version,omitempty"`
	Problem   string    `json:"problem,omitempty"`
	LastError string    `json:"last_error,omitempty"` // of its log
}

// FlowStatus compares the flows of a bridge with those that start had loaded: an
// ovs-vswitchd that was restarted has none, and says nothing.
type FlowStatus struct {
	Bridge  string `json:"bridge"`
	Loaded  int    `json:"loaded"`
	Now     int    `json:"now"`
	Problem string `json:"problem,omitempty"`
}

// answerTime is how long a daemon may take to answer, in seconds.
const answerTime = 5

// Look tells how the replica of a workdir is.
func Look(ctx context.Context, wd *workdir.Dir, state State, rt runtime.Runtime) (Status, error) {
	s := Status{Workdir: wd.Path(), Runtime: state.Runtime, Ready: true}
	for _, d := range expected(wd, state.Kinds) {
		one, err := lookAt(ctx, rt, d)
		if err != nil {
			return s, err
		}
		s.Ready = s.Ready && one.Answers
		s.Daemons = append(s.Daemons, one)
		if d.Role == roleVswitchd && one.Answers {
			s.Flows = countFlows(ctx, wd, rt)
		}
	}
	for _, f := range s.Flows {
		s.Ready = s.Ready && f.Problem == ""
	}
	return s, ctx.Err()
}

// expected are the daemons that a replica of these kinds has.
func expected(wd *workdir.Dir, kinds []workdir.Kind) []runtime.Daemon {
	var list []runtime.Daemon
	for _, k := range kinds {
		list = append(list, server(wd, k))
		if k != workdir.OVS {
			continue
		}
		list = append(list, vswitchd(wd))
		if _, err := os.Stat(wd.VarRunRecorded()); err == nil {
			list = append(list, recordedServer(wd))
		}
	}
	return list
}

var daemonVersion = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)

func lookAt(ctx context.Context, rt runtime.Runtime, d runtime.Daemon) (DaemonStatus, error) {
	s := DaemonStatus{Role: d.Role}
	state, err := rt.State(ctx, d)
	if err != nil {
		return s, err
	}
	s.Running, s.PID, s.Container, s.Problem = state.Running, state.PID, state.Container, state.Problem
	s.LastError = daemon.LastError(d)
	if !s.Running {
		if s.Problem == "" {
			s.Problem = "it does not run"
		}
		return s, nil
	}
	// It is written once, when the daemon starts.
	if info, err := os.Stat(daemon.PIDFile(d)); err == nil {
		s.Since = info.ModTime().UTC().Truncate(time.Second)
	}
	bound, cancel := context.WithTimeout(ctx, answerTime*time.Second)
	defer cancel()
	out, err := daemon.Ask(bound, rt, d.RunDir, d.Program, "version")
	if m := daemonVersion.FindSubmatch(out); err == nil && m != nil {
		s.Answers, s.Version = true, string(m[1])
		return s, nil
	}
	s.Problem = "it does not answer"
	if err != nil {
		s.Problem += ": " + err.Error()
	}
	return s, nil
}

var flowCount = regexp.MustCompile(`flow_count=([0-9]+)`)

// countFlows asks each bridge of the report for its flows.
func countFlows(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) []FlowStatus {
	report, err := Report(wd)
	if err != nil {
		return nil // a start that goes on has none yet
	}
	var all []FlowStatus
	for _, b := range report.Bridges {
		if c := b.Counts[workdir.Flows]; c != nil {
			all = append(all, countBridge(ctx, wd, rt, b, c))
		}
	}
	return all
}

func countBridge(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime, b report.BridgeReport, c *report.Counts) FlowStatus {
	f := FlowStatus{Bridge: b.Name, Loaded: c.Restored + c.Different}
	const versions = "OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15"
	target := "unix:" + filepath.Join(wd.VarRun(workdir.OVS), b.Name+".mgmt")
	out, err := rt.Tool(ctx, wd.VarRun(workdir.OVS), nil, "ovs-ofctl", "--timeout="+strconv.Itoa(answerTime), "-O", versions, "--", "dump-aggregate", target)
	m := flowCount.FindSubmatch(out)
	switch {
	case err != nil:
		f.Problem = err.Error()
	case m == nil:
		f.Problem = "ovs-ofctl dump-aggregate says " + strings.TrimSpace(string(out))
	default:
		f.Now, _ = strconv.Atoi(string(m[1]))
		if f.Now < f.Loaded {
			f.Problem = fmt.Sprintf("%d flows are gone; ovs-offline start restores them", f.Loaded-f.Now)
		}
	}
	return f
}
