package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// ofWorker returns options for the capture of the worker of Kubernetes.
func ofWorker(t *testing.T) Options {
	t.Helper()
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	o := options(t)
	o.NB, o.SB, o.Nodes = wd.Database(workdir.NB), wd.Database(workdir.SB), []Recorded{nodeOf(wd, "worker")}
	return o
}

// running returns the roles of the daemons in a folder that run.
func running(t *testing.T, o Options) (roles []string) {
	t.Helper()
	for _, d := range append(newNodeDaemons(o.Dir, 0, Recorded{}).daemons(), northd(o.Dir),
		centralServer(o.Dir, workdir.SB), centralServer(o.Dir, workdir.NB)) {
		if _, held, err := daemon.LockOwner(daemon.PIDFile(d)); held {
			roles = append(roles, d.Role)
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	return roles
}

func TestStopLeavesNothing(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	o.Northd = true
	s := start(t, o)
	if roles := running(t, o); len(roles) != 7 {
		t.Fatalf("running: %q", roles)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if roles := running(t, o); len(roles) > 0 {
		t.Errorf("still running: %q", roles)
	}
	if entries, err := os.ReadDir(o.Dir.Path()); err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
}

func TestScratchOfAKilledCommandIsEnded(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	o.Northd = true
	if _, err := Start(t.Context(), o); err != nil { // never stopped
		t.Fatal(err)
	}
	before, _ := os.ReadFile(daemon.PIDFile(newNodeDaemons(o.Dir, 0, Recorded{}).controller()))
	o.Northd = false
	o.Runtime = process.New(process.Options{Folders: o.Dir.RuntimeFolders()})
	start(t, o)
	if roles := running(t, o); len(roles) != 5 {
		t.Errorf("running: %q", roles)
	}
	if words, err := os.ReadFile("/proc/" + strings.TrimSpace(string(before)) + "/cmdline"); err == nil &&
		len(words) > 0 { // a zombie has no words
		t.Errorf("the process %s of the first Scratch still runs: %q", before, words)
	}
}

func TestNextCommandEndsWhatIsLeft(t *testing.T) {
	fidelity.NeedScratch(t)
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	dir, err := Lock(wd)
	if err != nil {
		t.Fatal(err)
	}
	rt := process.New(process.Options{Folders: dir.RuntimeFolders()})
	o := Options{Dir: dir, Runtime: rt, SB: wd.Database(workdir.SB), Nodes: []Recorded{nodeOf(wd, "worker")}}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	if err := EndLeft(t.Context(), wd, local.Runtimes); err != nil || len(running(t, o)) != 5 {
		t.Errorf("a Scratch in use: %v; running: %q", err, running(t, o))
	}
	dir.Unlock()
	if err := EndLeft(t.Context(), wd, local.Runtimes); err != nil || len(running(t, o)) != 0 {
		t.Errorf("%v; running: %q", err, running(t, o))
	}
	if _, err := os.Lstat(dir.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir.Path(), err)
	}
}

// startingRuntime calls a function before each start of a daemon.
type startingRuntime struct {
	runtime.Runtime
	before func(runtime.Daemon) error
}

func (r startingRuntime) Start(ctx context.Context, d runtime.Daemon) error {
	if err := r.before(d); err != nil {
		return err
	}
	return r.Runtime.Start(ctx, d)
}

func TestInterruptedStartLeavesNothing(t *testing.T) {
	fidelity.NeedScratch(t)
	for _, program := range []string{"ovsdb-server", "ovs-vswitchd", "ovn-controller"} {
		o := ofWorker(t)
		ctx, cancel := context.WithCancel(t.Context())
		o.Runtime = startingRuntime{o.Runtime, func(d runtime.Daemon) error {
			if d.Program == program {
				cancel()
			}
			return nil
		}}
		if _, err := Start(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", program, err)
		}
		if roles := running(t, o); len(roles) > 0 {
			t.Errorf("interrupted before %s: still running: %q", program, roles)
		}
	}
}

func TestInterruptedWaitReturns(t *testing.T) {
	fidelity.NeedScratch(t)
	s := start(t, ofWorker(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMissingProgramIsNamedWithARemedy(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	o.Runtime = startingRuntime{o.Runtime, func(d runtime.Daemon) error {
		if d.Program == "ovn-controller" {
			return fmt.Errorf("ovn-controller is %w in the image", runtime.ErrNotInstalled)
		}
		return nil
	}}
	_, err := Start(t.Context(), o)
	if !errors.Is(err, runtime.ErrNotInstalled) || !strings.Contains(err.Error(), "ovs-offline image add") {
		t.Error(err)
	}
}

func TestEndedControllerIsNamed(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	s := start(t, o)
	if err := o.Runtime.Stop(t.Context(), s.nodes["worker"].controller()); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "node worker: ovn-controller has ended") {
		t.Error(err)
	}
}

func TestEndedSwitchIsNamed(t *testing.T) {
	fidelity.NeedScratch(t)
	s := start(t, ofWorker(t))
	state, err := s.options.Runtime.State(t.Context(), s.nodes["worker"].vswitchd())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dump(t.Context(), "worker", openflow.OpenFlow15); err == nil ||
		!strings.Contains(err.Error(), "node worker: ovs-vswitchd has ended: ") {
		t.Errorf("got %v, want that ovs-vswitchd has ended", err)
	}
}

func TestUnknownChassisIsRefused(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	o.Nodes[0].Chassis = "other"
	if _, err := Start(t.Context(), o); !errors.Is(err, ErrNoChassis) || !strings.Contains(err.Error(), `"other"`) {
		t.Error(err)
	}
}

// TestNothingLeadsOutside checks what ovn-controller could connect to: the capture names a
// remote of the live node.
func TestNothingLeadsOutside(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	s := start(t, o)
	row, err := singleRow(t.Context(), s.nodes["worker"].db, "Open_vSwitch", "external_ids")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range row.Map("external_ids") {
		if strings.Contains(key, "remote") && value != "unix:"+readerSocket(o.Dir) {
			t.Errorf("%s=%s", key, value)
		}
	}
	for _, d := range s.nodes["worker"].daemons() {
		state, err := o.Runtime.State(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		own, err := os.Readlink("/proc/self/ns/net")
		theirs, errTheirs := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", state.PID))
		if err != nil || errTheirs != nil || own == theirs {
			t.Errorf("%s has the network %s, this process %s (%v, %v)", d.Role, theirs, own, err, errTheirs)
		}
	}
}

// TestReadersChangeNothing looks for what an ovn-controller writes to the SB database with
// each number.
func TestReadersChangeNothing(t *testing.T) {
	fidelity.NeedScratch(t)
	s := start(t, ofWorker(t))
	first := s.config
	if err := s.Wait(t.Context()); err != nil { // what came with the first number is written by now
		t.Fatal(err)
	}
	rows, err := s.sb.Select(t.Context(), "Chassis_Private", "nb_cfg")
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	for _, r := range rows {
		if config, _ := r.Int("nb_cfg"); config >= first {
			t.Errorf("nb_cfg %d was written", config)
		}
	}
}

// TestPortsThatControllerAddsAreNumbered starts with a database that has no tunnels.
func TestPortsThatControllerAddsAreNumbered(t *testing.T) {
	fidelity.NeedScratch(t)
	o := ofWorker(t)
	first := start(t, o)
	row, err := singleRow(t.Context(), first.nodes["worker"].db, "Open_vSwitch", "external_ids")
	if err != nil {
		t.Fatal(err)
	}
	ids := row.Map("external_ids")
	conf := filepath.Join(ovs.Dir(t), "conf.db")
	ovs.Run(t, "ovsdb-tool", "create", conf, ovs.Schema)
	bare := ovs.Serve(t, conf)
	bare.Run("ovs-vsctl", "--no-wait", "--db="+bare.Remote, "--", "add-br", "br-int", "--", "set", "Open_vSwitch", ".",
		"external_ids:system-id="+ids["system-id"], "external_ids:ovn-encap-ip="+ids["ovn-encap-ip"],
		"external_ids:ovn-encap-type="+ids["ovn-encap-type"])
	bare.Stop()
	o.Nodes[0].Conf, o.Nodes[0].Lists = conf, ""
	s := start(t, o)
	interfaces, err := s.nodes["worker"].db.Select(t.Context(), "Interface", "name", "type", "ofport")
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Dump(t.Context(), "worker", openflow.OpenFlow15)
	if err != nil {
		t.Fatal(err)
	}
	tunnels := 0
	for _, i := range interfaces {
		if i.String("type") == "geneve" {
			tunnels++
			number, _ := i.Int("ofport")
			if number == 0 || !strings.Contains(d.Flows, fmt.Sprintf("in_port=%d ", number)) {
				t.Errorf("no flow is for the tunnel %s with the number %d", i.String("name"), number)
			}
		}
	}
	if tunnels == 0 {
		t.Error("ovn-controller has added no tunnel")
	}
}
