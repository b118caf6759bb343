package k8s

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
)

// openshift returns the platform for tests of other things: it needs one pod per node.
func openshift() platform {
	for _, p := range platforms {
		if p.layout == "openshift" {
			return p
		}
	}
	panic("no such platform")
}

// expectError checks that a run failed with an error that holds the words, and left
// no files.
func expectError(t *testing.T, r result, dir string, named ...string) {
	t.Helper()
	if r.code != 1 {
		t.Errorf("exit %d, want 1\n%s\n%s", r.code, r.out, r.complaints)
	}
	for _, name := range named {
		if !strings.Contains(r.complaints, name) {
			t.Errorf("the message does not hold %q: %s", name, r.complaints)
		}
	}
	if have, err := read(dir); len(have) > 0 || err != nil {
		t.Errorf("left %d files, %v", len(have), err)
	}
}

// expectOneTry checks that a run did not wait for an error to pass.
func expectOneTry(t *testing.T, r result) {
	t.Helper()
	if strings.Contains(r.complaints, "trying again") {
		t.Errorf("tried again: %s", r.complaints)
	}
}

// TestUnusablePodsAreNamed collects from pods that are missing or do not work.
func TestUnusablePodsAreNamed(t *testing.T) {
	t.Parallel() // much of it is waiting; no other parallel test uses the node
	c, n := sharedNode(t)
	// pod returns the only pod of a platform, whose container for OVS's tools is spoilt.
	pod := func(t *testing.T, b *builder, spoil func(*cluster.Container)) cluster.Pod {
		p := openshift().pods(t, b)[0]
		tools := p.Containers["ovnkube-controller"]
		spoil(&tools)
		p.Containers["ovnkube-controller"] = tools
		return p
	}
	newBuilder := func(t *testing.T) *builder {
		return &builder{c: c, node: n, shell: "bash", lab: liveNode(t, "kubernetes"), t: t}
	}
	t.Run("not ready", func(t *testing.T) {
		b := newBuilder(t)
		b.add(pod(t, b, func(tools *cluster.Container) { tools.Unready = true }))
		// Its containers run, so its node can be collected. That it is not ready is
		// often the reason to collect it.
		if r := collect(t, c, "-w", filepath.Join(t.TempDir(), "w"), n.Name); r.code != 0 {
			t.Errorf("exit %d\n%s", r.code, r.complaints)
		}
	})
	t.Run("crash-looping", func(t *testing.T) {
		b := newBuilder(t)
		p := pod(t, b, func(tools *cluster.Container) { tools.Crashes = true })
		b.add(p)
		dir := filepath.Join(t.TempDir(), "w")
		expectError(t, collect(t, c, "-w", dir, n.Name), dir, p.Name, "CrashLoopBackOff")
	})
	t.Run("no shell", func(t *testing.T) {
		b := newBuilder(t)
		b.shell = ""
		p := openshift().pods(t, b)[0]
		b.add(p)
		dir := filepath.Join(t.TempDir(), "w")
		r := collect(t, c, "-w", dir, n.Name)
		expectError(t, r, dir, p.Name, "the container lacks a required tool: sh")
		expectOneTry(t, r)
	})
	t.Run("gone", func(t *testing.T) {
		b := newBuilder(t)
		p := openshift().pods(t, b)[0]
		p.Node = "gone"
		addNode(t, c, p.Node, n.FromServer.Address)
		if err := c.AddStrayPod(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.RemovePods(background, p) })
		dir := filepath.Join(t.TempDir(), "w")
		expectError(t, collect(t, c, "-w", dir, "gone"), dir, p.Name)
	})
	t.Run("no node", func(t *testing.T) {
		deploy(t, c, n, openshift())
		dir := filepath.Join(t.TempDir(), "w")
		expectError(t, collect(t, c, "-w", dir, "not-there"), dir, "not-there", n.Name)
	})
	t.Run("kubelet down", func(t *testing.T) {
		deploy(t, c, n, openshift())
		n.Kubelet.Kill()
		dir := filepath.Join(t.TempDir(), "w")
		expectError(t, collect(t, c, "-w", dir, n.Name, stall), dir, n.Name)
		if err := n.Kubelet.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNodeWithoutVswitchd collects a node whose ovs-vswitchd has ended: its database
// is collected, and the errors of other tools are printed but not collected.
func TestNodeWithoutVswitchd(t *testing.T) {
	c, n := sharedNode(t)
	l := smallNode(t, someFlows(10, 1))
	end(filepath.Join(l.dir, "ovs/ovs-vswitchd.pid"))
	socket := filepath.Join(l.dir, "ovs/br-int.mgmt")
	ovs.Await(t, "ovs-vswitchd to end", func() bool {
		_, err := os.Lstat(socket)
		return os.IsNotExist(err)
	})
	deployLab(t, c, n, openshift(), l)
	dir := filepath.Join(t.TempDir(), "w")
	r := collect(t, c, "-w", dir, n.Name)
	if r.code != 3 || !strings.Contains(r.complaints,
		"dump-flows br-int: exit code 1: ovs-ofctl: br-int is not a bridge or a socket") {
		t.Errorf("exit %d\n%s", r.code, r.complaints)
	}
	have, err := read(dir)
	if err != nil || have["db/ovs/conf.db"] == "" || have["db/ovn_nb/ovnnb_db.db"] == "" ||
		have["restore_flows/br-int.flows.dump"] != "" {
		t.Errorf("%v: %q", err, slices.Collect(maps.Keys(have)))
	}
}

// TestDatabaseWithoutQuorumDoesNotHang collects a node whose clustered OVN databases
// have one member left. A client that waits for such a member would wait forever.
func TestDatabaseWithoutQuorumDoesNotHang(t *testing.T) {
	c, n := sharedNode(t)
	l := smallNode(t, someFlows(10, 1))
	dbs, err := l.raise("lost")
	if err != nil {
		t.Fatal(err)
	}
	for db, name := range map[string]string{"nb": "OVN_Northbound", "sb": "OVN_Southbound"} {
		end(filepath.Join(dbs[db].leader, "pid"))
		socket := "unix:" + filepath.Join(dbs[db].follower, "ovn"+db+"_db.sock")
		query := `["_Server",{"op":"select","table":"Database","where":[["name","==","` + name +
			`"]],"columns":["connected"]}]`
		ovs.Await(t, "the member to notice", func() bool {
			out, err := exec.Command("ovsdb-client", "--timeout=10", "query", socket, query).Output()
			return err == nil && strings.Contains(string(out), `"connected":false`)
		})
	}
	b := &builder{c: c, node: n, shell: "bash", lab: l, t: t}
	pods := []cluster.Pod{b.pod("ovn-kubernetes", "ovnkube-node-"+n.Name, "app=ovnkube-node",
		boxes{"ovnkube-node": l.ovs()})}
	for i, dirs := range [][2]string{{dbs["nb"].leader, dbs["sb"].leader}, {dbs["nb"].follower, dbs["sb"].follower}} {
		pods = append(pods, b.pod("ovn-kubernetes", fmt.Sprintf("ovnkube-db-%d", i), "name=ovnkube-db",
			boxes{"nb-ovsdb": at(dirs[0], "/run/ovn"), "sb-ovsdb": at(dirs[1], "/run/ovn")}))
	}
	b.add(pods...)
	dir := filepath.Join(t.TempDir(), "w")
	r := collect(t, c, "-w", dir, n.Name)
	for _, said := range []string{"the OVN NB database: ", "ovnkube-db-1/nb-ovsdb: this member has lost its cluster",
		"ovnkube-db-1/sb-ovsdb: this member has lost its cluster", "ovnkube-db-0/nb-ovsdb: "} {
		if r.code != 3 || !strings.Contains(r.complaints, said) {
			t.Errorf("exit %d, and no %q in: %s", r.code, said, r.complaints)
		}
	}
	l.checkFlows(t, dir)
}

// TestMissingPermissionsAreNamed collects as users with too few permissions.
func TestMissingPermissionsAreNamed(t *testing.T) {
	c, n := sharedNode(t)
	deploy(t, c, n, openshift())
	for _, test := range []struct {
		user  string
		may   []string
		named []string // words of the error; nil if the permissions suffice
	}{
		{user: "nobody", may: []string{"list pods"}, named: []string{"pods/exec", "create", "openshift-ovn-kubernetes"}},
		{user: "nothing-but-get", may: []string{"list pods", "get pods/exec"},
			named: []string{"pods/exec", "create", "openshift-ovn-kubernetes"}},
		{user: "nothing-but-create", may: []string{"list pods", "create pods/exec"}},
		{user: "enough", may: []string{"list pods", "create pods/exec", "get pods/exec"}},
	} {
		t.Run(test.user, func(t *testing.T) {
			grant(t, c, test.user, test.may...)
			dir := filepath.Join(t.TempDir(), "w")
			r := collectAs(t, c, test.user, "", "-w", dir, n.Name)
			if test.named != nil {
				expectError(t, r, dir, test.named...)
				expectOneTry(t, r)
			} else if r.code != 0 {
				t.Errorf("exit %d\n%s", r.code, r.complaints)
			}
		})
	}
}

// grant gives a user permissions, each "VERB RESOURCE".
func grant(t *testing.T, c *cluster.Cluster, user string, may ...string) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, m := range may {
		verb, resource, _ := strings.Cut(m, " ")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource},
			Verbs: []string{verb}})
	}
	if err := c.Grant(t.Context(), user, rules...); err != nil {
		t.Fatal(err)
	}
}

// TestInterruptLeavesNothing interrupts a run with Ctrl-C while commands in a pod wait for
// a stalled connection.
func TestInterruptLeavesNothing(t *testing.T) {
	c, n := sharedNode(t)
	b := deployLab(t, c, n, openshift(), smallNode(t, someFlows(2000, 120)))
	before := b.snapshot()
	n.FromServer.Break(&cluster.Fault{Kind: cluster.Stall, After: 500e3})
	defer n.FromServer.Break(nil)
	dir := t.TempDir()
	command := program(t, collectArgs(t, c, cluster.Admin, "", "-w", filepath.Join(dir, "w"), n.Name)...)
	var complaints strings.Builder
	command.Stderr = &complaints
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "a command to wait for a stalled stream",
		func() bool { return n.FromServer.Happened() > 0 && blocked(n) })
	syscall.Kill(command.Process.Pid, syscall.SIGINT)
	command.Wait()
	if code := command.ProcessState.ExitCode(); code != 1 || !strings.Contains(complaints.String(), "interrupted") {
		t.Errorf("exit %d: %s", code, complaints.String())
	}
	ovs.Await(t, "the processes in the pods to end", func() bool { return len(n.Processes()) == 0 })
	for _, change := range differences(before, b.snapshot()) {
		t.Error("changed in a pod: ", change)
	}
	if have, err := read(filepath.Join(dir, "w")); len(have) > 0 || err != nil {
		t.Errorf("left %d files, %v", len(have), err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "w"))
	for _, entry := range left {
		if entry.Name() != ".lock" {
			t.Errorf("left %s", entry.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// blocked reports whether a process in the node's pods waits for room in a pipe.
func blocked(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Processes(), func(pid int) bool {
		where, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
		return err == nil && strings.Contains(string(where), "pipe_write")
	})
}
