package replica

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// TestEndlessTraceIsBounded runs a trace that does not end in Open vSwitch 3.1.0: its
// ovs-vswitchd ends at the limit, which status explains, and start starts it again.
func TestEndlessTraceIsBounded(t *testing.T) {
	engines.Each(t, func(t *testing.T, r engines.Runtime) {
		needTools(t)
		ctx := context.Background()
		wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(wd.Unlock)
		if err := os.MkdirAll(wd.RestoreFlows(), 0o700); err != nil {
			t.Fatal(err)
		}
		dump := filepath.Join(wd.RestoreFlows(), "br0.flows.dump")
		if err := os.WriteFile(dump, []byte(" cookie=0x0, priority=60000,ip actions=ct(table=0)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		rt := r.For(t, wd)
		t.Cleanup(func() {
			if err := Stop(ctx, wd, rt); err != nil {
				t.Error(err)
			}
		})
		start(t, wd, rt)
		tighten(t, wd, rt)
		if r.Label == engines.PodmanRootless && !sweep.Whole() {
			return // the limit is set here too; what then ends is the same in docker
		}
		if _, err := trace(ctx, wd, rt); err == nil {
			t.Skip("this Open vSwitch ends the trace")
		}
		var status DaemonStatus
		ovs.Await(t, "the end of ovs-vswitchd, which answers no more and runs a little longer", func() bool {
			status = readStatus(t, wd, rt)
			return !status.Running
		})
		if !strings.Contains(status.Problem, "its memory was limited to ") {
			t.Errorf("after the trace: %+v", status)
		}
		start(t, wd, rt)
		if status := readStatus(t, wd, rt); !status.Answers {
			t.Errorf("after the next start: %+v", status)
		}
	})
}

func start(t *testing.T, wd *workdir.Dir, rt runtime.Runtime) {
	t.Helper()
	if _, err := Start(context.Background(), wd, rt, Options{}); err != nil {
		t.Fatal(err)
	}
}

func trace(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) ([]byte, error) {
	return rt.Tool(ctx, wd.VarRun(workdir.OVS), nil, "ovs-appctl", "ofproto/trace", "br0", "in_port=LOCAL,ip")
}

// tighten checks the limit that Start has set, and takes most of it away: a trace reaches
// the whole within half a minute, which is long for a test.
func tighten(t *testing.T, wd *workdir.Dir, rt runtime.Runtime) {
	t.Helper()
	const room, least, most = 64 << 20, 512 << 20, 2 << 30
	state, err := rt.State(context.Background(), vswitchd(wd))
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(state.PID, unix.RLIMIT_DATA, nil, &limit); err != nil {
		t.Fatal(err)
	}
	recorded, err := ReadState(wd)
	if err != nil {
		t.Fatal(err)
	}
	if limit.Cur < least || limit.Cur > most || fmt.Sprint(limit.Cur) != fmt.Sprint(recorded.Memory) {
		t.Errorf("the limit is %d, recorded %d", limit.Cur, recorded.Memory)
	}
	limit.Cur -= least - room
	if err := unix.Prlimit(state.PID, unix.RLIMIT_DATA, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// readStatus returns the status of ovs-vswitchd.
func readStatus(t *testing.T, wd *workdir.Dir, rt runtime.Runtime) DaemonStatus {
	t.Helper()
	state, err := ReadState(wd)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ReadStatus(context.Background(), wd, state, rt)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Daemons {
		if d.Role == roleVswitchd {
			return d
		}
	}
	t.Fatalf("no %s in %+v", roleVswitchd, all)
	return DaemonStatus{}
}
