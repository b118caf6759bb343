package k8s

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ovs-offline/replica"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
	"ovs-offline/test/oracle/fidelity"
)

// platform is a deployment of OVS and OVN: the pods of a node, and the layout that
// collect-k8s must detect.
type platform struct {
	name     string
	topology string
	shell    string // the shell that is sh in its images
	layout   string // the name that collect-k8s gives the deployment
	args     []string
	pods     func(t *testing.T, b *builder) []cluster.Pod
}

// platforms returns the deployments in docs/kubernetes.md. They differ in labels,
// containers and the paths of sockets.
var platforms = []platform{
	{
		name: "KIND central", topology: "kubernetes", shell: "bash", layout: "ovn-kubernetes-central",
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			return []cluster.Pod{
				b.pod("ovn-kubernetes", "ovnkube-node-"+b.node.Name, "app=ovnkube-node",
					boxes{"ovnkube-node": b.lab.ovs(), "ovn-controller": b.lab.ovs()}),
				b.pod("ovn-kubernetes", "ovs-node-"+b.node.Name, "app=ovs-node", boxes{"ovs-daemons": b.lab.ovsFile()}),
				b.pod("ovn-kubernetes", "ovnkube-db-0", "name=ovnkube-db", boxes{"nb-ovsdb": b.lab.ovn(), "sb-ovsdb": b.lab.ovn()}),
			}
		},
	},
	{
		name: "KIND interconnect", topology: "kubernetes", shell: "bash", layout: "ovn-kubernetes",
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			return []cluster.Pod{
				b.pod("ovn-kubernetes", "ovs-node-"+b.node.Name, "app=ovs-node", boxes{"ovs-daemons": b.lab.ovsFile()}),
				b.pod("ovn-kubernetes", "ovnkube-node-"+b.node.Name, "app=ovnkube-node", boxes{
					"ovnkube-controller": b.lab.ovs(), "nb-ovsdb": b.lab.ovn(), "sb-ovsdb": b.lab.ovn(), "ovn-controller": b.lab.ovs(),
				}),
			}
		},
	},
	{
		name: "OpenShift 4.5", topology: "kubernetes", shell: "bash", layout: "openshift-central",
		args: []string{"--openshift"},
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			return append(b.masters(t),
				b.pod("openshift-ovn-kubernetes", "ovs-node-"+b.node.Name, "app=ovs-node", boxes{"ovs-daemons": b.lab.ovsFile()}),
				b.pod("openshift-ovn-kubernetes", "ovnkube-node-"+b.node.Name, "app=ovnkube-node",
					boxes{"ovnkube-node": b.lab.ovs(), "ovn-controller": b.lab.ovs()}),
			)
		},
	},
	{
		name: "OpenShift 4.7 to 4.13", topology: "kubernetes", shell: "bash", layout: "openshift-central",
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			return append(b.masters(t),
				b.pod("openshift-ovn-kubernetes", "ovnkube-node-"+b.node.Name, "app=ovnkube-node",
					boxes{"ovnkube-node": b.lab.ovsFile(), "ovn-controller": b.lab.ovs()}),
			)
		},
	},
	{
		name: "OpenShift 4.14 and later", topology: "kubernetes", shell: "bash", layout: "openshift",
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			return []cluster.Pod{
				b.pod("openshift-ovn-kubernetes", "ovnkube-node-"+b.node.Name, "app=ovnkube-node", boxes{
					"ovnkube-controller": b.lab.ovs(), "nbdb": b.lab.ovn(), "sbdb": b.lab.ovn(), "ovn-controller": b.lab.ovs(),
				}),
			}
		},
	},
	{
		name: "RHOSO", topology: "openstack", shell: "bash", layout: "rhoso",
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			dbs := clustered(t, "openstack")
			// The sockets are in /tmp up to feature release 4, and in /etc/ovn later.
			return []cluster.Pod{
				b.pod("openstack", "ovn-controller-ovs-"+b.node.Name, "service=ovn-controller-ovs",
					boxes{"ovsdb-server": b.lab.ovsFile(), "ovs-vswitchd": b.lab.ovsFile()}),
				b.pod("openstack", "ovn-controller-"+b.node.Name, "service=ovn-controller", boxes{"ovn-controller": b.lab.ovs()}),
				b.pod("openstack", "ovsdbserver-nb-0", "service=ovsdbserver-nb",
					boxes{"ovsdbserver-nb": at(dbs["nb"].leader, "/tmp")}),
				b.pod("openstack", "ovsdbserver-sb-0", "service=ovsdbserver-sb",
					boxes{"ovsdbserver-sb": at(dbs["sb"].follower, "/etc/ovn")}),
			}
		},
	},
	{
		name: "kube-ovn", topology: "kubernetes", shell: "dash", layout: "kube-ovn",
		pods: func(t *testing.T, b *builder) []cluster.Pod {
			central := b.pod("kube-system", "ovn-central-0", "app=ovn-central", boxes{"ovn-central": b.lab.ovn()})
			central.Labels["ovn-nb-leader"], central.Labels["ovn-sb-leader"] = "true", "true"
			return []cluster.Pod{
				b.pod("kube-system", "ovs-ovn-"+b.node.Name, "app=ovs", boxes{"openvswitch": b.lab.ovsFile()}),
				central,
			}
		},
	},
}

// masters adds the pods of OpenShift's clustered databases. The first in order is a
// follower.
func (b *builder) masters(t *testing.T) []cluster.Pod {
	dbs := clustered(t, "kubernetes")
	var pods []cluster.Pod
	for i, member := range []func(raft) string{func(r raft) string { return r.follower },
		func(r raft) string { return r.leader }} {
		pods = append(pods, b.pod("openshift-ovn-kubernetes", fmt.Sprintf("ovnkube-master-%d", i), "app=ovnkube-master",
			boxes{
				"nbdb": at(member(dbs["nb"]), "/run/ovn"), "sbdb": at(member(dbs["sb"]), "/run/ovn"),
			}))
	}
	return pods
}

func at(host, container string) []cluster.Mount {
	return []cluster.Mount{{Host: host, Container: container}}
}

// boxes maps a pod's containers to their mounts of the node.
type boxes map[string][]cluster.Mount

// builder makes the pods of a test on a node.
type builder struct {
	platform string
	c        *cluster.Cluster
	node     *cluster.Node
	shell    string
	lab      *lab

	t    *testing.T
	pods []cluster.Pod
}

var programs = map[string]func() (cluster.Programs, error){
	"bash": sync.OnceValues(func() (cluster.Programs, error) { return copyPrograms("bash") }),
	"dash": sync.OnceValues(func() (cluster.Programs, error) { return copyPrograms("dash") }),
	"":     sync.OnceValues(func() (cluster.Programs, error) { return copyPrograms("") }),
}

func copyPrograms(shell string) (cluster.Programs, error) {
	return cluster.CopyPrograms(filepath.Join(scratch(), "programs-"+shell), shell)
}

// pod returns a pod of the node; its label is KEY=VALUE.
func (b *builder) pod(namespace, name, label string, boxes boxes) cluster.Pod {
	b.t.Helper()
	p := cluster.Pod{Namespace: namespace, Name: name, Node: b.node.Name, Labels: map[string]string{},
		Containers: map[string]cluster.Container{}}
	if key, value, is := strings.Cut(label, "="); is {
		p.Labels[key] = value
	}
	for box, mounts := range boxes {
		p.Containers[box] = b.container(mounts...)
	}
	return p
}

func (b *builder) container(mounts ...cluster.Mount) cluster.Container {
	b.t.Helper()
	copied, err := programs[b.shell]()
	if err != nil {
		b.t.Fatal(err)
	}
	wrapper, err := filepath.Abs(tools)
	if err != nil {
		b.t.Fatal(err)
	}
	return cluster.Container{Programs: copied,
		Mounts: append(mounts, cluster.Mount{Host: wrapper, Container: "/usr/local/bin", ReadOnly: true})}
}

// add adds pods, which are removed when the test ends.
func (b *builder) add(pods ...cluster.Pod) {
	b.t.Helper()
	b.pods = append(b.pods, pods...)
	b.t.Cleanup(func() {
		if err := b.c.RemovePods(background, pods...); err != nil {
			b.t.Error(err)
		}
	})
	if err := b.c.AddPods(b.t.Context(), pods...); err != nil {
		b.t.Fatal(err)
	}
}

// deploy adds the pods of a platform to a node.
func deploy(t *testing.T, c *cluster.Cluster, n *cluster.Node, p platform) *builder {
	t.Helper()
	return deployLab(t, c, n, p, liveNode(t, p.topology))
}

// deployLab works like deploy, with the given live node.
func deployLab(t *testing.T, c *cluster.Cluster, n *cluster.Node, p platform, l *lab) *builder {
	t.Helper()
	b := &builder{platform: p.name, c: c, node: n, shell: p.shell, lab: l, t: t}
	b.add(p.pods(t, b)...)
	return b
}

// addNode adds a node without a kubelet of its own, see cluster.AddNode.
func addNode(t *testing.T, c *cluster.Cluster, name, address string) {
	t.Helper()
	if err := c.AddNode(t.Context(), name, address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.RemoveNode(background, name) })
}

// TestEveryLayoutReplaysLikeLiveNode collects a node of each platform, and compares
// the flows, groups, meters, TLV mappings and traces of its replica with the live ones: in a sweep of each, and
// otherwise of one with databases of its own, of one with clustered ones, and of one in another lab.
func TestEveryLayoutReplaysLikeLiveNode(t *testing.T) {
	c, n := sharedNode(t)
	begin := time.Now()
	replayed := map[string]bool{} // what a replica answers depends on the content, which comes from a lab and through a shell
	for _, p := range sweep.Named(t, platforms, func(p platform) string { return p.name }, "KIND interconnect",
		"OpenShift 4.7 to 4.13", "RHOSO") {
		replayed[p.name] = true
	}
	for _, p := range platforms {
		t.Run(p.name, func(t *testing.T) {
			b := deploy(t, c, n, p)
			before := b.snapshot()
			dir := filepath.Join(t.TempDir(), "w")
			r := collect(t, c, append([]string{"-w", dir, "--output", "json", n.Name}, p.args...)...)
			if r.code != 0 {
				t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
			}
			for _, change := range differences(before, b.snapshot()) {
				t.Error("changed in a pod: ", change)
			}
			checkLayout(t, p.layout, r.out)
			if replayed[p.name] {
				b.checkReplica(dir)
			}
		})
	}
	t.Logf("%d layouts: %.0f s", len(platforms), time.Since(begin).Seconds())
}

// checkLayout checks which layout collect-k8s detected.
func checkLayout(t *testing.T, want, report string) {
	t.Helper()
	var got struct{ Nodes []struct{ Layout string } }
	if err := json.Unmarshal([]byte(report), &got); err != nil || len(got.Nodes) != 1 || got.Nodes[0].Layout != want {
		t.Errorf("layout %+v (%v), want %s: %.200s", got, err, want, report)
	}
}

// checkReplica starts a replica and compares it with the live node.
func (b *builder) checkReplica(dir string) {
	b.t.Helper()
	if r := ovsOfflineRun(b.t, "-w", dir, "start"); r.code != 0 {
		b.t.Fatalf("start: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	checkTruth(b.t, dir, b.lab.truth)
	n, err := fidelity.Adopt(b.t.Context(), dir, replica.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer n.Close(background)
	f, err := n.Compare(b.t.Context(), b.lab.packets, b.lab.live)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%-24s %s", "", fidelity.Header)
	b.t.Logf("%-24s %s", b.platform, f)
	if f.Results+f.Balanced != f.Packets || f.Packets == 0 {
		b.t.Errorf("the result lines of %d of %d packets differ:\n%s", f.Packets-f.Results-f.Balanced, f.Packets,
			strings.Join(f.Differences, "\n"))
	}
}

// snapshot lists the files and processes of the pods: of files in their images that they
// changed names, modes, times and contents, and of folders that they share with the node,
// in which daemons write, only names.
func (b *builder) snapshot() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for _, p := range b.pods {
		for name := range p.Containers {
			pid, err := b.c.FirstProcess(b.t.Context(), p.Namespace, p.Name, name)
			if err != nil {
				b.t.Fatal(err)
			}
			upper, err := cluster.Upper(pid)
			if err != nil {
				b.t.Fatal(err)
			}
			walk(b.t, all, upper, true)
			walk(b.t, all, fmt.Sprintf("/proc/%d/root/dev", pid), false)
		}
	}
	for _, pid := range b.node.Processes() {
		all["process "+machine.CommandLine(pid)] = "runs"
	}
	walk(b.t, all, filepath.Join(b.lab.dir, "ovs"), false)
	walk(b.t, all, filepath.Join(b.lab.dir, "ovn"), false)
	return all
}

func walk(t *testing.T, into map[string]string, root string, contents bool) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		into[path] = "there"
		if !contents {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		into[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			into[path] += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func differences(before, after map[string]string) []string {
	var list []string
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if before[path] != after[path] {
			list = append(list, fmt.Sprintf("%s: was %q, is %q", path, before[path], after[path]))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[path]; !there {
			list = append(list, path+" has gone")
		}
	}
	return list
}
