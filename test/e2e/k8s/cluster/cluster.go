// Package cluster starts what a client sees of a Kubernetes cluster: a real
// kube-apiserver, and kubelets whose containers mount the sockets of the lab's
// daemons. There is no scheduler and no controller, so pods stay as a test makes
// them.
//
// All servers listen on loopback or unix sockets, and end with the process that
// started them.
package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin is the user with all permissions.
const Admin = "admin"

// Options of a cluster.
type Options struct {
	APIServer string   // the program of ../apiserver
	Dir       string   // private; empty
	Flags     []string // more flags for kube-apiserver
	Users     []string // other users than Admin, without permissions until Grant
}

// Cluster is an API server and its kubelet.
type Cluster struct {
	Kubelet *Kubelet // serves the nodes without a kubelet of their own
	Client  kubernetes.Interface
	Config  *rest.Config // Admin's
	Address string       // host:port of the API server

	dir        string
	ca         *authority
	kubelets   []*Kubelet
	containers sync.Map // see Kubelet
	tokens     map[string]string
	ended      chan error
	alive      io.Closer // closing it ends the API server
}

// Start starts a cluster without nodes and waits until it serves.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{dir: opts.Dir, tokens: map[string]string{}, ended: make(chan error, 1)}
	err := c.writeFiles(opts.Users)
	if err != nil {
		return nil, err
	}
	if c.Kubelet, err = c.NewKubelet(); err == nil {
		err = c.startServer(opts)
	}
	if err == nil {
		err = c.connect(ctx)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// NewKubelet starts another kubelet, which knows all pods of the cluster.
func (c *Cluster) NewKubelet() (*Kubelet, error) {
	k, err := startKubelet(c.dir, c.file(fmt.Sprintf("runtime-%d.sock", len(c.kubelets))), c.ca, &c.containers)
	if err == nil {
		c.kubelets = append(c.kubelets, k)
	}
	return k, err
}

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
	return os.WriteFile(c.file("tokens.csv"), []byte(list.String()), 0o600)
}

func (c *Cluster) startServer(opts Options) error {
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
		etcd,
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		"--token-auth-file=" + c.file("tokens.csv"), "--authorization-mode=RBAC", "--anonymous-auth=false",
		"--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes", "--service-account-key-file=" + c.file("accounts.key"), "--service-account-signing-key-file=" + c.file("accounts.key"),
		"--kubelet-client-certificate=" + c.file("client.crt"), "--kubelet-client-key=" + c.file("client.key"), "--kubelet-certificate-authority=" + c.file("ca.crt"),
		// without it, the server resolves the nodes' names by DNS
		"--kubelet-preferred-address-types=InternalIP",
	}
	log, err := os.Create(c.file("apiserver.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(opts.APIServer, append(args, opts.Flags...)...)
	command.Dir, command.Stdout, command.Stderr = c.dir, log, log
	if c.alive, err = command.StdinPipe(); err != nil {
		return err
	}
	if err = command.Start(); err != nil {
		return err
	}
	go func() { c.ended <- command.Wait() }()
	return nil
}

// connect waits until the server is ready.
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
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		_, err := c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			// Pods can be created once the default namespace exists.
			if _, err = c.Client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{}); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w\n%s", err, c.log())
		case ended := <-c.ended:
			c.ended <- ended
			return fmt.Errorf("the API server ended: %w\n%s", ended, c.log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// log returns the end of the API server's log.
func (c *Cluster) log() string {
	text, err := os.ReadFile(c.file("apiserver.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Kubeconfig writes the kubeconfig of a user, with the address of the API server or,
// if set, of a proxy before it (host:port).
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
	return path, clientcmd.WriteToFile(*config, path)
}

// Stop ends the cluster if it runs. It does not end containers.
func (c *Cluster) Stop() {
	if c.alive != nil {
		c.alive.Close()
		<-c.ended
		c.alive = nil
	}
	for _, k := range c.kubelets {
		k.Stop()
	}
}
