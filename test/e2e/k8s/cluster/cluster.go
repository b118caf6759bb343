// Package cluster starts a Kubernetes cluster on this machine: a real kube-apiserver,
// and nodes with real kubelets and containerds, whose pods mount the sockets of the
// lab's daemons. Without Options.Jobs there is no scheduler and no controller, so pods
// stay as a test makes them.
//
// All servers listen on loopback or unix sockets.
package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/machine"
)

// Admin is the user with all permissions.
const Admin = "admin"

// Options of a cluster.
type Options struct {
	Kubernetes string         // the program of ../kubernetes
	Pause      string         // the program of ../pause
	Dir        string         // private; empty
	Cgroup     machine.Cgroup // that its nodes' are below
	Flags      []string       // more flags for kube-apiserver
	Users      []string       // other users than Admin, without permissions until Grant
	Jobs       bool           // with a scheduler and the controllers that a Job needs
}

// Cluster is an API server and its nodes.
type Cluster struct {
	Client  kubernetes.Interface
	Config  *rest.Config // Admin's
	Address string       // host:port of the API server
	Server  *Process     // the API server and its etcd, whose data outlive it

	// Scheduler and Controllers are nil without Options.Jobs.
	Scheduler   *Process
	Controllers *Process

	program string
	dir     string
	cgroup  machine.Cgroup
	ca      *authority
	tokens  map[string]string
	kinds   meta.RESTMapper // of the kinds that the API server has

	mu    sync.Mutex
	nodes map[string]*Node
}

// Start starts a cluster without nodes and waits until it serves.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{program: opts.Kubernetes, dir: opts.Dir, tokens: map[string]string{}, nodes: map[string]*Node{}}
	err := c.start(ctx, opts)
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opts Options) (err error) {
	if c.cgroup, err = opts.Cgroup.Child(filepath.Base(opts.Dir)); err != nil {
		return err
	}
	if err := writeImage(c.file("image.tar"), ImageWithoutTools, opts.Pause); err != nil {
		return err
	}
	if err := c.writeFiles(opts.Users); err != nil {
		return err
	}
	flags := opts.Flags
	if !opts.Jobs {
		// No controller makes the service account that a pod would need.
		flags = append([]string{"--disable-admission-plugins=ServiceAccount"}, flags...)
	}
	if err := c.startServer(flags); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil || !opts.Jobs {
		return err
	}
	return c.startJobs()
}

// Dir is the folder of the cluster's files.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) writeFiles(users []string) (err error) {
	if c.ca, err = newAuthority(c.file("ca.crt")); err != nil {
		return err
	}
	if err = c.ca.issue(server(), c.file("server.crt"), c.file("server.key")); err != nil {
		return err
	}
	if err = c.ca.issue(client("kube-apiserver"), c.file("client.crt"), c.file("client.key")); err != nil {
		return err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err = writeKey(c.file("accounts.key"), accounts); err != nil {
		return err
	}
	var list strings.Builder
	for _, user := range append([]string{Admin}, users...) {
		c.tokens[user] = rand.Text()
		fmt.Fprintf(&list, "%s,%s,%s", c.tokens[user], user, user)
		if user == Admin {
			list.WriteString(`,"system:masters"`)
		}
		list.WriteString("\n")
	}
	if err := os.WriteFile(c.file("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.file("tokens.csv"), []byte(list.String()), 0o600)
}

func (c *Cluster) startServer(flags []string) error {
	// kube-apiserver cannot choose a port itself. This one is free when it is chosen.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.Address = free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(c.Address)

	etcd := c.file("etcd")
	if err := os.Mkdir(etcd, 0o700); err != nil {
		return err
	}
	args := []string{
		c.program, "apiserver", etcd,
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		"--token-auth-file=" + c.file("tokens.csv"), "--authorization-mode=RBAC", "--anonymous-auth=false",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes", "--service-account-key-file=" + c.file("accounts.key"), "--service-account-signing-key-file=" + c.file("accounts.key"),
		"--kubelet-client-certificate=" + c.file("client.crt"), "--kubelet-client-key=" + c.file("client.key"), "--kubelet-certificate-authority=" + c.file("ca.crt"),
		// without it, the server resolves the nodes' names by DNS
		"--kubelet-preferred-address-types=ExternalIP,InternalIP",
		"--audit-policy-file=" + c.file("audit.yaml"), "--audit-log-path=" + c.file("audit.log"),
	}
	c.Server, err = c.StartProcess("kube-apiserver", append(args, flags...))
	return err
}

// StartProcess starts a server that is part of no node.
func (c *Cluster) StartProcess(name string, argv []string) (*Process, error) {
	servers, err := c.cgroup.Child("servers")
	if err != nil {
		return nil, err
	}
	folder, err := servers.Unified()
	if err != nil {
		return nil, err
	}
	p := &Process{name: name, argv: argv, dir: c.dir, log: c.file(name + ".log"), cgroup: folder}
	return p, p.Start()
}

// connect makes the client and waits until the server is ready.
func (c *Cluster) connect(ctx context.Context) error {
	path, err := c.Kubeconfig(Admin, "")
	if err != nil {
		return err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		return err
	}
	c.Config.QPS, c.Config.Burst = 1000, 1000
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	c.kinds = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client.Discovery()))
	return c.AwaitServer(ctx)
}

// AwaitServer waits until the API server is ready.
func (c *Cluster) AwaitServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ovs.Patience())
	defer cancel()
	return c.Server.Await(ctx, func() error {
		if _, err := c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		// Pods can be created once the default namespace exists.
		_, err := c.Client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
		return err
	})
}

// Kubeconfig returns the path of the kubeconfig of a user, with the address of the API
// server or, if set, of a proxy before it (host:port).
func (c *Cluster) Kubeconfig(user, address string) (string, error) {
	if address == "" {
		address = c.Address
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthority: c.file("ca.crt")}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: c.tokens[user]}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user}
	config.CurrentContext = "test"
	path := c.file("kubeconfig-" + user + "-" + strings.ReplaceAll(address, ":", "-"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil // a program may be reading it
	}
	return path, clientcmd.WriteToFile(*config, path)
}

func (c *Cluster) node(name string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name]
}

// Stop ends the cluster and its nodes, if they run.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	nodes := slices.Collect(maps.Values(c.nodes))
	c.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Stop())
	}
	for _, p := range []*Process{c.Scheduler, c.Controllers, c.Server} {
		p.Kill()
	}
	if c.cgroup != "" {
		errs = append(errs, c.cgroup.Remove())
	}
	return errors.Join(errs...)
}
