package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// StandIn runs commands in a node's containers in place of its kubelet and containerd, in
// the same way: it asks a streaming server for a URL and forwards the connection there.
// It is for the faults that real ones do not show at a chosen byte: the connection
// between the two ends, stalls or is reset, and a command is killed.
type StandIn struct {
	Runtime *Hop // between the kubelet and the streaming server
	Command *Hop // the output of commands; its only fault is Kill

	cluster *Cluster
	streams streaming.Server
	servers []*http.Server
}

// StandIn puts a stand-in in place of the node's kubelet, until the returned function is
// called.
func (n *Node) StandIn() (s *StandIn, end func(), err error) {
	s = &StandIn{Runtime: &Hop{}, Command: &Hop{}, cluster: n.cluster}
	address, err := s.start(n.file("standin.sock"))
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	n.FromServer.Target(address)
	return s, func() { n.FromServer.Target(n.address); s.stop() }, nil
}

func (s *StandIn) start(socket string) (address string, err error) {
	// Only the URLs that it returns hold the address.
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: "runtime"}
	if s.streams, err = streaming.NewServer(config, s); err != nil {
		return "", err
	}
	inner, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	s.serve(s.streams, inner)

	pair, err := tls.LoadX509KeyPair(s.cluster.file("server.crt"), s.cluster.file("server.key"))
	if err != nil {
		return "", err
	}
	clients := x509.NewCertPool()
	clients.AddCert(s.cluster.ca.certificate)
	outer, err := tls.Listen("tcp", kubeletAddress+":0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	if err != nil {
		return "", err
	}
	toRuntime := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		return s.Runtime.wrap(conn), nil
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		s.serveExec(w, r, toRuntime)
	})
	s.serve(mux, outer)
	return outer.Addr().String(), nil
}

func (s *StandIn) serve(handler http.Handler, listener net.Listener) {
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	s.servers = append(s.servers, server)
	go server.Serve(listener)
}

func (s *StandIn) stop() {
	for _, server := range s.servers {
		server.Close()
	}
}

func (s *StandIn) serveExec(w http.ResponseWriter, r *http.Request, transport http.RoundTripper) {
	first, err := s.cluster.FirstProcess(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.streams.GetExec(&runtimeapi.ExecRequest{
		ContainerId: strconv.Itoa(first), Cmd: r.URL.Query()["command"],
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

// Exec runs a command for the streaming server. If the client disconnects, the command
// gets a closed pipe.
func (s *StandIn) Exec(_ context.Context, first string, argv []string, in io.Reader, out, errOut io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize) error {
	if tty {
		return errors.New("no terminals here")
	}
	command := exec.Command("nsenter", append([]string{"--target", first, "--mount", "--pid", "--root", "--wd", "--"}, argv...)...)
	env, err := os.ReadFile("/proc/" + first + "/environ")
	if err != nil {
		return err
	}
	command.Env = strings.Split(strings.TrimRight(string(env), "\x00"), "\x00")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() { syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return run(command, in, &fatal{to: writer(out), hop: s.Command, kill: sync.OnceFunc(kill)}, writer(errOut))
}

// run runs a command. It does not wait for the end of in.
func run(command *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	if in != nil {
		pipe, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			io.Copy(pipe, in)
			pipe.Close()
		}()
	}
	command.Stdout, command.Stderr = out, errOut
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := exit.ExitCode()
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
			code = 128 + int(status.Signal())
		}
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return err
}

// fatal is the output of a command, which is killed at the fault of the hop.
type fatal struct {
	to      io.Writer // nil to discard
	hop     *Hop
	written int64
	kill    func()
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
	f.kill()
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
func (s *StandIn) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("no attach here")
}

// PortForward returns an error: port-forward is not supported.
func (s *StandIn) PortForward(context.Context, string, int32, io.ReadWriteCloser) error {
	return errors.New("no port-forward here")
}
