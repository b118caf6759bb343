package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/internal/show"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// ErrNoAnswer is wrapped when an ovs-vswitchd does not answer within the time limit, or ends
// before it has answered.
var ErrNoAnswer = errors.New("ovs-vswitchd does not answer")

// UnavailableError is the error of a node whose replica can't be asked.
type UnavailableError struct {
	Node  string
	Cause error
}

func (e *UnavailableError) Error() string { return e.Advising(nil) }

func (e *UnavailableError) Unwrap() error { return e.Cause }

// Advising returns the text of the error with the command that starts the replica.
func (e *UnavailableError) Advising(call show.Call) string {
	all := call.Line(e.Node, "start", "--chassis", "all")
	if _, elsewhere := errors.AsType[elsewhereError](e.Cause); elsewhere {
		return e.Text()
	}
	if errors.Is(e.Cause, errNotMade) { // the text has what is missing
		return fmt.Sprintf("%s; with its path or name for SOURCE: %s; then: %s", e.Text(), call.Line("", "image", "add", "SOURCE"), all)
	}
	if errors.Is(e.Cause, errNoSwitch) {
		return fmt.Sprintf("%s: collect its flows and its OVS database, or have it synthesised from the OVN databases, which needs a release of OVN that fits, with: %s", e.Text(), all)
	}
	what := "start it with"
	if errors.Is(e.Cause, ErrNoAnswer) || errors.Is(e.Cause, errDatabase) {
		what = "start its replica again with"
	}
	return fmt.Sprintf("%s: %s: %s", e.Text(), what, call.Line(e.Node, "start"))
}

// Text returns the node, if it has a name, and the cause, without advice for a replica of this
// machine.
func (e *UnavailableError) Text() string {
	if e.Node == "" {
		return e.Cause.Error()
	}
	return fmt.Sprintf("node %s: %v", e.Node, e.Cause)
}

// elsewhereError is why a replica on another machine can't be reached. Its text has the advice.
type elsewhereError struct{ error }

// Unwrap returns the cause.
func (e elsewhereError) Unwrap() error { return e.error }

var (
	errNotStarted = errors.New("its replica does not run")
	errStopped    = errors.New("the replica was stopped meanwhile")
	errNoSwitch   = errors.New("nothing of its Open vSwitch was collected, and none was synthesised")
	errNotMade    = errors.New("nothing of its Open vSwitch was collected, and the last start could synthesise none")
	errOtherPorts = errors.New("its replica was lost and started again, and has other port numbers now")
	errDown       = errors.New("the ovs-vswitchd of its replica can't be reached")
	errDatabase   = errors.New("the OVS database of its replica can't be read")
)

// unreachableError returns the error of a node to whose ovs-vswitchd no connection was made.
func (a *asker) unreachableError(err error) error {
	if errors.Is(err, fs.ErrNotExist) { // the pid file, or the socket that it names
		if a.answered.Load() {
			return &UnavailableError{a.node, errStopped}
		}
		if manifest, err := a.dir.Manifest(); err == nil && len(manifest.Collections) > 0 && manifest.Collection(workdir.OVS) == nil {
			if why := a.notMade(); why != "" {
				return &UnavailableError{a.node, fmt.Errorf("%w: %s", errNotMade, why)}
			}
			return &UnavailableError{a.node, errNoSwitch}
		}
		return &UnavailableError{a.node, errNotStarted}
	}
	return &UnavailableError{a.node, fmt.Errorf("%w: it was killed or crashed", errDown)}
}

// notMade returns why the last start, after which the databases alone run, could make no switch of the node: it needs the release of OVN
// that wrote the databases. It returns "" where that is not the cause, or nothing was started.
func (a *asker) notMade() string {
	var start report.Report
	if err := workdir.ReadUnsynced(a.dir.ReportFile(), &start); err != nil {
		return ""
	}
	wrote, runs := start.Recorded.OVN, start.Running.OVN
	if wrote == "" || runs == "" || versions.Minor(wrote) == versions.Minor(runs) {
		return ""
	}
	return fmt.Sprintf("OVN %s wrote its databases, and OVN %s runs, which can't compute its flows: get a container image (of a registry or a file) or a root directory that has OVN %s",
		wrote, runs, versions.Minor(wrote))
}

// lateError returns the error of a command that ovs-vswitchd did not answer in time.
func (a *asker) lateError(command string) error {
	return &UnavailableError{a.node, fmt.Errorf("%w to %s within %v%s", ErrNoAnswer, command, askTimeout, hint(command))}
}

// endedError returns the error of a command during which ovs-vswitchd ended.
func (a *asker) endedError(ctx context.Context, command string) error {
	if a.stopped(ctx) {
		return &UnavailableError{a.node, errStopped}
	}
	return &UnavailableError{a.node, fmt.Errorf("%w: it ended while it executed %s%s", ErrNoAnswer, command, hint(command))}
}

// stopped reports whether ovs-vswitchd ended because it was asked to: it then removes its pid file, after it has closed all connections, and does
// not if it crashes or is killed (lib/daemon-unix.c).
func (a *asker) stopped(ctx context.Context) bool {
	const patience, pause = time.Second, 20 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(pause) {
		if _, err := os.Stat(filepath.Join(a.dir.VarRun(workdir.OVS), "ovs-vswitchd.pid")); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// hint returns the usual cause for which a command has no answer. The limit of passes in
// one run of ofproto/trace came with Open vSwitch 3.4.
func hint(command string) string {
	if command != "ofproto/trace" {
		return ""
	}
	return ", as Open vSwitch before 3.4 does for a packet that recirculates without end"
}
