package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Kubelet serves exec for one or more nodes as a real kubelet does: it asks the
// container runtime for a URL and forwards the connection to the streaming server
// there, here on a unix socket.
type Kubelet struct {
	Address string // host:port
	Runtime *Hop   // between the kubelet and the streaming server
	Command *Hop   // the output of commands; its only fault is Kill

	streams streaming.Server
	servers []*http.Server

	containers *sync.Map // NAMESPACE/POD/CONTAINER -> *Container, of the whole cluster

	mu      sync.Mutex
	execs   []Exec
	running int
}

// Exec is a command that a kubelet has run.
type Exec struct {
	Container  string // NAMESPACE/POD/CONTAINER
	Argv       []string
	Begin, End time.Time
	Err        error
}

func startKubelet(dir, socket string, ca *authority, containers *sync.Map) (*Kubelet, error) {
	k := &Kubelet{Runtime: &Hop{}, Command: &Hop{}, containers: containers}
	var err error
	// Only the URLs that it returns hold the address.
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: "runtime"}
	if k.streams, err = streaming.NewServer(config, k); err != nil {
		return nil, err
	}
	inner, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	k.serve(k.streams, inner)

	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.certificate)
	outer, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	if err != nil {
		return nil, err
	}
	k.Address = outer.Addr().String()
	toRuntime := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		return k.Runtime.wrap(conn), nil
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		k.serveExec(w, r, toRuntime)
	})
	k.serve(mux, outer)
	return k, nil
}

func (k *Kubelet) serve(handler http.Handler, listener net.Listener) {
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	k.servers = append(k.servers, server)
	go server.Serve(listener)
}

func (k *Kubelet) serveExec(w http.ResponseWriter, r *http.Request, transport http.RoundTripper) {
	id := strings.Join([]string{r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")}, "/")
	if k.container(id) == nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := k.streams.GetExec(&runtimeapi.ExecRequest{
		ContainerId: id, Cmd: r.URL.Query()["command"],
		Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr, Tty: options.TTY,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	location, err := url.Parse(answer.Url)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	proxy.NewUpgradeAwareHandler(location, transport, false, true, responder{}).ServeHTTP(w, r)
}

type responder struct{}

func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

func (k *Kubelet) container(id string) *Container {
	if c, there := k.containers.Load(id); there {
		return c.(*Container)
	}
	return nil
}

// Exec runs a command for the streaming server.
func (k *Kubelet) Exec(_ context.Context, id string, argv []string, in io.Reader, out, errOut io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize) error {
	c := k.container(id)
	if c == nil {
		return fmt.Errorf("container %s does not exist", id)
	}
	if tty {
		return errors.New("no terminals here")
	}
	begin := time.Now()
	k.mu.Lock()
	k.running++
	k.mu.Unlock()
	kill := make(chan struct{})
	err := c.exec(argv, in, &fatal{to: writer(out), hop: k.Command, kill: kill}, writer(errOut), kill)
	k.mu.Lock()
	k.running--
	k.execs = append(k.execs, Exec{Container: id, Argv: argv, Begin: begin, End: time.Now(), Err: err})
	k.mu.Unlock()
	return err
}

// fatal is the output of a command, which is killed at the fault of the hop.
type fatal struct {
	to      io.Writer // nil to discard
	hop     *Hop
	written int64
	kill    chan struct{}
	dead    bool
}

func (f *fatal) Write(p []byte) (int, error) {
	if f.dead || f.to == nil {
		return len(p), nil
	}
	fault, left := f.hop.due(f.written, int64(len(p)))
	f.written += int64(len(p))
	if fault == nil {
		return f.to.Write(p)
	}
	f.dead = true
	close(f.kill)
	_, err := f.to.Write(p[:left])
	return len(p), err
}

// writer converts a nil WriteCloser into a nil Writer.
func writer(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

// Attach returns an error: attach is not supported.
func (k *Kubelet) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("no attach here")
}

// PortForward returns an error: port-forward is not supported.
func (k *Kubelet) PortForward(context.Context, string, int32, io.ReadWriteCloser) error {
	return errors.New("no port-forward here")
}

// Execs returns the commands that have ended since the last call.
func (k *Kubelet) Execs() []Exec {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended := k.execs
	k.execs = nil
	return ended
}

// Running returns the number of running commands.
func (k *Kubelet) Running() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running
}

// Stop ends the kubelet. It does not end containers.
func (k *Kubelet) Stop() {
	for _, server := range k.servers {
		server.Close()
	}
}
