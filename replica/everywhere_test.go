package replica

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ovs-offline/collect"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

// started is a replica in some runtime.
type started struct {
	wd     *workdir.Dir
	rt     runtime.Runtime
	report *report.Report
}

// startIn collects a report and starts a replica of it, which ends with the test.
func startIn(t *testing.T, r engines.Runtime, name, report string) started {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	ctx := context.Background()
	if _, _, err := collect.Collect(ctx, wd, collect.SosReport{Path: report}, collect.Options{}); err != nil {
		t.Fatal(err)
	}
	s := started{wd: wd, rt: r.For(t, wd)}
	t.Cleanup(func() {
		if err := Stop(ctx, wd, s.rt); err != nil {
			t.Error(err)
		}
	})
	if s.report, err = Start(ctx, wd, s.rt, Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s started) trace(t *testing.T, bridge, flow string) string {
	t.Helper()
	out, err := s.rt.Tool(context.Background(), s.wd.VarRun(workdir.OVS), nil, "ovs-appctl", "ofproto/trace", bridge, flow)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestReplicasAreIndependent runs replicas of different nodes side by side, and checks that
// stopping one does not affect the other.
func TestReplicasAreIndependent(t *testing.T) {
	engines.Each(t, func(t *testing.T, r engines.Runtime) {
		if r.Label == engines.PodmanRootless {
			sweep.Only(t, "the same test on docker, whose containers have their names by the same code,")
		}
		needTools(t)
		const vm = "in_port=3,icmp,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,nw_src=192.168.10.5,nw_dst=192.168.10.6,icmp_type=8,nw_ttl=64"
		// The folders have the same name, so that only their paths differ.
		one := startIn(t, r, "wd", compute(t))
		two := startIn(t, r, "wd", captures.Report(t, "captures/ovn-kubernetes-worker"))
		for _, s := range []started{one, two} {
			if !s.report.Complete() {
				t.Errorf("the report is not complete: %v %v %v", s.report.Rejected, s.report.Lost, s.report.Steps)
			}
		}
		if out := one.trace(t, "br-int", vm); !strings.Contains(out, "Datapath actions: ct(") {
			t.Errorf("the first answers %s", out)
		}
		if out := two.trace(t, "breth0", "in_port=1,icmp"); !strings.Contains(out, "Datapath actions: ") {
			t.Errorf("the second answers %s", out)
		}
		if err := Stop(context.Background(), one.wd, one.rt); err != nil {
			t.Fatal(err)
		}
		if out := two.trace(t, "breth0", "in_port=1,icmp"); !strings.Contains(out, "Datapath actions: ") {
			t.Errorf("once the first has ended the second answers %s", out)
		}
	})
}

var zero = regexp.MustCompile(`^0+$`)

// TestContainersAreRestricted checks in /proc the restrictions of each container.
func TestContainersAreRestricted(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, r engines.Runtime) {
		s := startIn(t, r, "wd", compute(t))
		for _, d := range daemons(s.wd) {
			proc := filepath.Join("/proc", strconv.Itoa(running(t, s.rt, d).PID))
			status := fields(t, filepath.Join(proc, "status"))
			for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				if !zero.MatchString(status[name]) {
					t.Errorf("%s has %s %s", d.Role, name, status[name])
				}
			}
			if status["NoNewPrivs"] != "1" {
				t.Errorf("%s can gain privileges: NoNewPrivs is %q", d.Role, status["NoNewPrivs"])
			}
			if uid, _, _ := strings.Cut(status["Uid"], "\t"); uid != strconv.Itoa(os.Geteuid()) {
				t.Errorf("%s runs as %q, not as the caller (%d)", d.Role, uid, os.Geteuid())
			}
			interfaces := fields(t, filepath.Join(proc, "net/dev"))
			delete(interfaces, "lo")
			for name := range interfaces {
				if !strings.Contains(name, "|") { // the table's head
					t.Errorf("%s has the interface %q", d.Role, name)
				}
			}
			checkMounts(t, s.wd, d, proc)
		}
		checkOwner(t, s.wd)
		up, err := s.rt.Tool(context.Background(), s.wd.Run(), nil, "cat", "/sys/class/net/lo/flags")
		if flags, parsed := strconv.ParseUint(strings.TrimSpace(string(up)), 0, 32); err != nil || parsed != nil ||
			flags&unix.IFF_UP == 0 {
			t.Errorf("lo is not up, and sFlow and IPFIX would not be traced: %q %v", up, err)
		}
	})
}

// fields reads lines of "name: value".
func fields(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, ok := strings.Cut(line, ":")
		if ok {
			found[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return found
}

// checkMounts checks that the root is not writable, and that the only folders of this
// machine in the container are the replica's own.
func checkMounts(t *testing.T, wd *workdir.Dir, d runtime.Daemon, proc string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for line := range strings.Lines(string(raw)) {
		part := strings.Fields(line)
		at, options := part[4], ","+part[5]+","
		switch {
		case at == wd.Run() || at == filepath.Dir(wd.VarRun(workdir.OVS)):
			ours++
		case at == "/" && !strings.Contains(options, ",ro,"):
			t.Errorf("%s can write to its root: %s", d.Role, line)
		case strings.HasPrefix(at, wd.Path()):
			t.Errorf("%s sees %s", d.Role, at)
		}
	}
	if ours != 2 {
		t.Errorf("%s sees %d of the replica's folders, not 2:\n%s", d.Role, ours, raw)
	}
}

// checkOwner checks that the caller owns all files that the replica made.
func checkOwner(t *testing.T, wd *workdir.Dir) {
	t.Helper()
	err := filepath.WalkDir(wd.Path(), func(path string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if err == nil && int(st.Uid) != os.Geteuid() {
			t.Errorf("%s belongs to %d", path, st.Uid)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStopEverywhere stops replicas some of whose daemons have already ended, and
// checks that the workdir is as it was before the start. Outside of a sweep, only local
// processes have each case, and all others the one where ovs-vswitchd has ended: to the others, a daemon is a daemon.
func TestStopEverywhere(t *testing.T) {
	engines.Each(t, func(t *testing.T, r engines.Runtime) {
		needTools(t)
		ctx := context.Background()
		wd := collected.Locked(t, compute(t))
		before := tree(t, wd.Path())
		rt := r.For(t, wd)
		for _, gone := range sweep.Rows([]string{"", "ovsdb-server", "ovs-vswitchd"}, func(gone string) bool {
			return r.Label == engines.Process || gone == "ovs-vswitchd"
		}) {
			if _, err := Start(ctx, wd, rt, Options{}); err != nil {
				t.Fatal(err)
			}
			for _, d := range daemons(wd) {
				if pid := running(t, rt, d).PID; d.Program == gone {
					if err := unix.Kill(pid, unix.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
			}
			// Another Runtime value, as another command would have: the first one may
			// hold more state.
			if err := Stop(ctx, wd, r.For(t, wd)); err != nil {
				t.Fatal(err)
			}
			if missing, extra := lines.Difference(before, tree(t, wd.Path())); len(missing)+len(extra) > 0 {
				t.Errorf("stop left %v and took %v", extra, missing)
			}
			for _, d := range daemons(wd) {
				if s, err := rt.State(ctx, d); err != nil || s.Running || s.Problem != "" {
					t.Errorf("after stop %s is %+v (%v)", d.Role, s, err)
				}
			}
		}
	})
}
