package replica

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// Status is the status of a replica.
type Status struct {
	Workdir string         `json:"workdir"`
	Runtime string         `json:"runtime"`
	Ready   bool           `json:"ready"` // every daemon answers, and no flow was lost
	Daemons []DaemonStatus `json:"daemons"`
	Flows   []FlowStatus   `json:"flows,omitempty"`
}

// DaemonStatus is the status of one daemon.
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

// FlowStatus compares the number of flows of a bridge with the number that Start
// loaded: an ovs-vswitchd that was restarted has none.
type FlowStatus struct {
	Bridge  string `json:"bridge"`
	Loaded  int    `json:"loaded"`
	Now     int    `json:"now"`
	Problem string `json:"problem,omitempty"`
}

// answerSeconds is the time in which a daemon must answer.
const answerSeconds = 5

// ReadStatus returns the status of a workdir's replica.
func ReadStatus(ctx context.Context, wd *workdir.Dir, state State, rt runtime.Runtime) (Status, error) {
	s := Status{Workdir: wd.Path(), Runtime: state.Runtime, Ready: true}
	for _, daemon := range expectedDaemons(wd, state.Kinds) {
		status, err := daemonStatus(ctx, rt, daemon)
		if err != nil {
			return s, err
		}
		if reached := memoryReached(state.Memory); daemon.Role == roleVswitchd && !status.Running && reached != "" {
			status.Problem += "; " + reached
		}
		s.Ready = s.Ready && status.Answers
		s.Daemons = append(s.Daemons, status)
		if daemon.Role == roleVswitchd && status.Answers {
			s.Flows = countFlows(ctx, wd, rt)
		}
	}
	if status, ok := namespacesStatus(wd); ok {
		s.Ready = s.Ready && status.Answers
		s.Daemons = append(s.Daemons, status)
	}
	for _, status := range s.Flows {
		s.Ready = s.Ready && status.Problem == ""
	}
	return s, ctx.Err()
}

// expectedDaemons returns the daemons that a replica of these databases has.
func expectedDaemons(wd *workdir.Dir, kinds []workdir.Kind) []runtime.Daemon {
	var list []runtime.Daemon
	for _, kind := range kinds {
		list = append(list, server(wd, kind))
		if kind != workdir.OVS {
			continue
		}
		list = append(list, vswitchd(wd))
		if _, err := os.Stat(wd.VarRunRecorded()); err == nil {
			list = append(list, recordedServer(wd))
		}
	}
	return list
}

func daemonStatus(ctx context.Context, rt runtime.Runtime, d runtime.Daemon) (DaemonStatus, error) {
	state, err := rt.State(ctx, d)
	if err != nil {
		return DaemonStatus{}, err
	}
	status := DaemonStatus{Role: d.Role, Running: state.Running, PID: state.PID, Container: state.Container, Problem: state.Problem, LastError: daemon.LastError(d)}
	if !status.Running {
		status.Problem = cmp.Or(status.Problem, "it does not run")
		return status, nil
	}
	// A daemon writes its pid file once, when it starts.
	if info, err := os.Stat(daemon.PIDFile(d)); err == nil {
		status.Since = info.ModTime().UTC().Truncate(time.Second)
	}
	asking, cancel := context.WithTimeout(ctx, answerSeconds*time.Second)
	defer cancel()
	out, err := askVersion(asking, rt, d)
	if version := versions.PrintedOVS(out); err == nil && version != "" {
		status.Answers, status.Version = true, version
		return status, nil
	}
	status.Problem = "it does not answer"
	if err != nil {
		status.Problem += ": " + err.Error()
	}
	return status, nil
}

// countFlows counts the flows of each bridge in the report. A start that has not
// finished has no report yet.
func countFlows(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) (all []FlowStatus) {
	r, err := Report(wd)
	if err != nil {
		return nil
	}
	for _, report := range r.Bridges {
		if counts := report.Counts[workdir.Flows]; counts != nil {
			all = append(all, countBridge(ctx, wd, rt, report.Name, counts))
		}
	}
	return all
}

var flowCount = lazyregexp.New(`flow_count=([0-9]+)`)

func countBridge(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime, bridge string, counts *report.Counts) FlowStatus {
	status := FlowStatus{Bridge: bridge, Loaded: counts.Restored + counts.Different}
	var versions []string
	for _, version := range openflow.Versions() {
		versions = append(versions, version.String())
	}
	runDir := wd.VarRun(workdir.OVS)
	out, err := rt.Tool(ctx, runDir, nil, "ovs-ofctl", "--timeout="+strconv.Itoa(answerSeconds), "-O", strings.Join(versions, ","),
		"--", "dump-aggregate", "unix:"+filepath.Join(runDir, bridge+".mgmt"))
	match := flowCount.FindSubmatch(out)
	switch {
	case err != nil:
		status.Problem = err.Error()
	case match == nil:
		status.Problem = "ovs-ofctl dump-aggregate prints " + strings.TrimSpace(string(out))
	default:
		status.Now, _ = strconv.Atoi(string(match[1]))
		if status.Now < status.Loaded {
			status.Problem = fmt.Sprintf("%d flows are gone; ovs-offline start restores them", status.Loaded-status.Now)
		}
	}
	return status
}
