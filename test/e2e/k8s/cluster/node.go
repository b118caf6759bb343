package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ovs-offline/test/daemons/ovs"
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
	holder  *Process // holds the namespaces open
	address string   // host:port of the kubelet
	flags   []string // of the kubelet
	// addresses are those of a node with a network of its own, whose network plugins are
	// others' files, too.
	addresses []string
	toServer  *Hop // from such a network to the API server
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
	return c.add(ctx, &Node{Name: name, cluster: c, dir: c.file("node-" + name), flags: flags})
}

// StartNodeApart starts a node in a network namespace of its own, which has no interface
// but lo, and in which the API server has the same address as on this machine. The node
// announces the addresses. Its pods need the network plugins and their configuration
// that the caller adds to the folder Plugins.
func (c *Cluster) StartNodeApart(ctx context.Context, name string, addresses ...string) (*Node, error) {
	return c.add(ctx, &Node{Name: name, cluster: c, dir: c.file("node-" + name), addresses: addresses})
}

func (c *Cluster) add(ctx context.Context, n *Node) (*Node, error) {
	if err := n.start(ctx); err != nil {
		n.Stop()
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[n.Name] = n
	return n, nil
}

// apart reports whether the node has a network of its own.
func (n *Node) apart() bool { return len(n.addresses) > 0 }

// Network returns the network namespace of the node.
func (n *Node) Network() Network {
	if !n.apart() {
		return ""
	}
	return NetworkOf(n.holder.PID())
}

func (n *Node) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ovs.Patience())
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
	for _, step := range []func(context.Context) error{n.hold, n.connect, n.startContainerd, n.startKubelet, n.announce} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// listenTwice starts a hop to an address of a kubelet, at a port that is free there.
func listenTwice() (*Hop, string, error) {
	for range 20 {
		hop, err := listenAt("", hopAddress+":0", "")
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
	script := "for d in /run /var/lib /var/log; do mount -t tmpfs tmpfs $d || exit; done; echo up; exec cat"
	argv := []string{"unshare", "--mount", "--propagation", "private"}
	if n.apart() {
		script = "ip link set lo up || exit; " + script
		argv = append(argv, "--net")
	}
	n.holder = &Process{name: "holder of " + n.Name, argv: append(argv, "sh", "-c", script), dir: "/", log: n.file("holder.log"), cgroup: folder}
	if err := n.holder.Start(); err != nil {
		return err
	}
	return n.holder.Await(ctx, func() error {
		if text, err := os.ReadFile(n.file("holder.log")); string(text) != "up\n" {
			return fmt.Errorf("mount: %s%w", text, err)
		}
		return nil
	})
}

// connect lets the API server and a node with a network of its own reach each other.
func (n *Node) connect(context.Context) (err error) {
	if !n.apart() {
		return nil
	}
	n.FromServer.targetIn(n.Network(), n.address)
	n.toServer, err = listenAt(n.Network(), n.cluster.Address, n.cluster.Address)
	return err
}

// Inside returns the arguments of a command in the node's namespaces.
func (n *Node) Inside(argv ...string) []string {
	pid := strconv.Itoa(n.holder.PID())
	inside := []string{"nsenter", "--mount=/proc/" + pid + "/ns/mnt"}
	if n.apart() {
		inside = append(inside, "--net=/proc/"+pid+"/ns/net")
	}
	return append(append(inside, "--"), argv...)
}

// Process returns a process in the node's namespaces and cgroup, which is not started.
func (n *Node) Process(name string, argv ...string) *Process {
	return &Process{name: name + " of " + n.Name, argv: n.Inside(argv...), dir: "/", log: n.file(name + ".log"), cgroup: n.holder.cgroup}
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// Folder makes a folder of the node, which ends with it.
func (n *Node) Folder(name string) (string, error) {
	return n.file(name), os.MkdirAll(n.file(name), 0o755)
}

// Plugins is the folder of the node's network plugins and of their configuration.
func (n *Node) Plugins() string { return n.file("cni") }

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
`, n.file("containerd"), n.file("state"), n.socket(), n.file("opt"), ImageWithoutTools, n.Plugins())
	if err := os.WriteFile(n.file("containerd.toml"), []byte(config), 0o600); err != nil {
		return err
	}
	if err := n.writePlugin(); err != nil {
		return err
	}
	n.Containerd = n.Process("containerd", "containerd", "--config", n.file("containerd.toml"))
	if err := n.Containerd.Start(); err != nil {
		return err
	}
	return n.Containerd.Await(ctx, func() error { return n.Import(ctx, n.cluster.file("image.tar")) })
}

func (n *Node) writePlugin() error {
	if err := os.Mkdir(n.Plugins(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.Plugins(), "loopback"), []byte(plugin), 0o700); err != nil || n.apart() {
		return err
	}
	const network = `{"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "loopback"}]}`
	return os.WriteFile(filepath.Join(n.Plugins(), "pods.conflist"), []byte(network), 0o600)
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
	n.Kubelet = n.Process("kubelet", append([]string{
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
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": n.announced()}})
	if err != nil {
		return err
	}
	return n.Kubelet.Await(ctx, func() error {
		node, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Status.DaemonEndpoints.KubeletEndpoint.Port == 0 {
			return errors.New("the Node object has no port yet")
		}
		if node, err = nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "node.cloudprovider.kubernetes.io/uninitialized" })
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// announced returns the addresses in the Node object. The API server prefers an
// ExternalIP.
func (n *Node) announced() []corev1.NodeAddress {
	list := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}}
	if !n.apart() {
		return append(list, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: hopAddress})
	}
	list = append(list, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: hopAddress})
	for _, address := range n.addresses {
		list = append(list, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return list
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
	for _, hop := range []*Hop{n.FromServer, n.toServer} {
		if hop != nil {
			hop.Stop()
		}
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

// PID returns the id of a process in the node's namespaces.
func (n *Node) PID() int { return n.holder.PID() }
