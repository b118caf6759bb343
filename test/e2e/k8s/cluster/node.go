package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ovs-offline/test/e2e/k8s/machine"
)

// Node is a node with a real kubelet and containerd. They have a mount namespace and a
// cgroup of their own, so that several nodes can run on one machine, and so that nothing
// is left of them.
type Node struct {
	Name       string
	Kubelet    *Process
	Containerd *Process
	// FromServer is the connection of the API server to the kubelet.
	FromServer *Hop

	cluster *Cluster
	dir     string
	cgroup  machine.Cgroup
	holder  *Process // holds the mount namespace open
	address string   // host:port of the kubelet
	flags   []string // of the kubelet
}

// Addresses of this machine. The API server connects to a node's hop, which has the same
// port as its kubelet: a kubelet sets the port of its Node object, but not the address.
const (
	kubeletAddress = "127.0.0.1"
	hopAddress     = "127.0.0.2"
)

// StartNode starts a node and waits until the API server can reach its kubelet, which
// gets the further flags.
func (c *Cluster) StartNode(ctx context.Context, name string, flags ...string) (*Node, error) {
	n := &Node{Name: name, cluster: c, dir: c.file("node-" + name), flags: flags}
	if err := n.start(ctx); err != nil {
		n.Stop()
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = n
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return err
	}
	var err error
	if n.cgroup, err = n.cluster.cgroup.Child(n.Name); err != nil {
		return err
	}
	if n.FromServer, n.address, err = listenTwice(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{n.hold, n.startContainerd, n.startKubelet, n.announce} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// listenTwice starts a hop to an address of a kubelet, at a port that is free there.
func listenTwice() (*Hop, string, error) {
	for range 20 {
		hop, err := listenAt(hopAddress+":0", "")
		if err != nil {
			return nil, "", err
		}
		_, port, _ := net.SplitHostPort(hop.Address)
		address := net.JoinHostPort(kubeletAddress, port)
		if free, err := net.Listen("tcp", address); err == nil {
			free.Close()
			hop.Target(address)
			return hop, address, nil
		}
		hop.Stop()
	}
	return nil, "", errors.New("found no port that is free at two addresses")
}

// hold makes the mount namespace. In it, the folders are empty that hold fixed paths of
// containerd and the kubelet, such as /run/containerd/s and /var/lib/kubelet.
func (n *Node) hold(ctx context.Context) error {
	servers, err := n.cgroup.Child("servers")
	if err != nil {
		return err
	}
	folder, err := servers.Unified()
	if err != nil {
		return err
	}
	const script = "for d in /run /var/lib /var/log; do mount -t tmpfs tmpfs $d || exit; done; echo up; exec cat"
	n.holder = &Process{name: "holder of " + n.Name, argv: []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", script}, dir: "/", log: n.file("holder.log"), cgroup: folder}
	if err := n.holder.Start(); err != nil {
		return err
	}
	return n.holder.await(ctx, func() error {
		if text, err := os.ReadFile(n.file("holder.log")); string(text) != "up\n" {
			return fmt.Errorf("mount: %s%w", text, err)
		}
		return nil
	})
}

// process returns a process in the node's namespace and cgroup.
func (n *Node) process(name string, argv ...string) *Process {
	inside := []string{"nsenter", "--mount=/proc/" + strconv.Itoa(n.holder.PID()) + "/ns/mnt", "--"}
	return &Process{name: name + " of " + n.Name, argv: append(inside, argv...), dir: "/", log: n.file(name + ".log"), cgroup: n.holder.cgroup}
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

func (n *Node) socket() string { return n.file("containerd.sock") }

// plugin is the network plugin of a node (the CNI specification 0.3.1 has its protocol).
// A pod has no interface but lo, and the address that containerd asks for leads nowhere:
// so nothing is left in the network of this machine.
const plugin = `#!/bin/sh
case $CNI_COMMAND in
ADD) nsenter --net="$CNI_NETNS" ip link set lo up || exit
     echo '{"cniVersion": "0.3.1", "interfaces": [{"name": "'"$CNI_IFNAME"'", "sandbox": "'"$CNI_NETNS"'"}], "ips": [{"version": "4", "address": "192.0.2.1/32", "interface": 0}]}' ;;
VERSION) echo '{"cniVersion": "0.3.1", "supportedVersions": ["0.3.1"]}' ;;
esac
`

func (n *Node) startContainerd(ctx context.Context) error {
	config := fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
address = %q
[plugins."io.containerd.internal.v1.opt"]
path = %q
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %[6]q
conf_dir = %[6]q
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`, n.file("containerd"), n.file("state"), n.socket(), n.file("opt"), ImageWithoutTools, n.file("cni"))
	if err := os.WriteFile(n.file("containerd.toml"), []byte(config), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(n.file("cni"), 0o700); err != nil {
		return err
	}
	const network = `{"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "loopback"}]}`
	if err := os.WriteFile(n.file("cni/pods.conflist"), []byte(network), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(n.file("cni/loopback"), []byte(plugin), 0o700); err != nil {
		return err
	}
	n.Containerd = n.process("containerd", "containerd", "--config", n.file("containerd.toml"))
	if err := n.Containerd.Start(); err != nil {
		return err
	}
	return n.Containerd.await(ctx, func() error { return n.Import(ctx, n.cluster.file("image.tar")) })
}

// Import adds the images in an archive of `docker save` to the node.
func (n *Node) Import(ctx context.Context, archive string) error {
	out, err := exec.CommandContext(ctx, "ctr", "--address", n.socket(), "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr images import: %w: %s", err, out)
	}
	return nil
}

func (n *Node) startKubelet(context.Context) error {
	kubeconfig, err := n.cluster.Kubeconfig(Admin, "")
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(n.address)
	config := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
port: %s
healthzPort: 0
tlsCertFile: %s
tlsPrivateKeyFile: %s
authentication: {x509: {clientCAFile: %s}, anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
volumePluginDir: %s
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%", pid.available: "0%%"}
imageGCHighThresholdPercent: 100
`, kubeletAddress, port, n.cluster.file("server.crt"), n.cluster.file("server.key"), n.cluster.file("ca.crt"), n.socket(), n.cgroup, n.file("plugins"))
	if err := os.WriteFile(n.file("kubelet.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	n.Kubelet = n.process("kubelet", append([]string{
		n.cluster.program, "kubelet", "--config=" + n.file("kubelet.yaml"), "--kubeconfig=" + kubeconfig,
		"--hostname-override=" + n.Name, "--root-dir=" + n.file("kubelet"), "--cert-dir=" + n.file("kubelet"), "--cloud-provider=external",
	}, n.flags...)...)
	return n.Kubelet.Start()
}

// announce waits for the Node object that the kubelet creates and does what a cloud
// provider would do: it sets the address, since a kubelet refuses to announce a loopback
// address itself, and then lets pods be scheduled there.
func (n *Node) announce(ctx context.Context) error {
	nodes := n.cluster.Client.CoreV1().Nodes()
	patch := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"Hostname","address":%q}]}}`, hopAddress, n.Name)
	return n.Kubelet.await(ctx, func() error {
		node, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Status.DaemonEndpoints.KubeletEndpoint.Port == 0 {
			return errors.New("the Node object has no port yet")
		}
		if node, err = nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "node.cloudprovider.kubernetes.io/uninitialized" })
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// Processes returns the processes of the node's pods, except the first one of each
// container.
func (n *Node) Processes() (pids []int) {
	for _, pid := range n.pods().Processes() {
		if machine.NamespacedPID(pid) > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// pods returns the cgroup of all pods, as a kubelet names it.
func (n *Node) pods() machine.Cgroup { return n.cgroup + "/kubepods" }

// Stop kills all processes of the node and its pods and removes its cgroups, mounts and
// files. The API server keeps its objects.
func (n *Node) Stop() error {
	n.cluster.mu.Lock()
	delete(n.cluster.nodes, n.Name)
	n.cluster.mu.Unlock()
	if n.FromServer != nil {
		n.FromServer.Stop()
	}
	var err error
	if n.cgroup != "" {
		err = n.cgroup.Remove()
	}
	for _, p := range []*Process{n.Kubelet, n.Containerd, n.holder} {
		p.Kill()
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
