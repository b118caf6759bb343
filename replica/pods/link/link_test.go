package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// farRoot is the variable that makes this program the far end of a link.
const farRoot = "LINK_TEST_ROOT"

// missingProgram is a script that the far end can't run.
const missingProgram = "/missing/program"

func TestMain(m *testing.M) {
	if root := os.Getenv(farRoot); root != "" {
		os.Exit(farEnd(root))
	}
	os.Exit(m.Run())
}

// farEnd serves a folder. A run is a shell script.
func farEnd(root string) int {
	s := Server{Root: root, Run: func(ctx context.Context, args []string, stdin, stdout, stderr *os.File) int {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", args[len(args)-1])
		c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
		_ = c.Run()
		return c.ProcessState.ExitCode()
	}, Command: func(args []string) *exec.Cmd {
		if script := args[len(args)-1]; script != missingProgram {
			return exec.Command("/bin/sh", "-c", script)
		}
		return exec.Command(missingProgram)
	}}
	cut, err := s.Serve(context.Background(), struct {
		io.ReadCloser
		io.Writer
	}{os.Stdin, os.Stdout})
	if cut && syscall.Getpgrp() == os.Getpid() {
		syscall.Kill(0, syscall.SIGKILL)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// machine is another machine with a folder of workdirs: its programs are child processes.
type machine struct {
	root, node string

	mu       sync.Mutex
	number   int // of the pod
	streams  int
	children []*exec.Cmd
	last     *childStream
}

// Pod returns the name of the pod.
func (m *machine) Pod() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint("pod-", m.number)
}

func (m *machine) String() string { return "pod test/" + m.Pod() }

// Folder returns the path of the workdir.
func (m *machine) Folder() string { return filepath.Join(m.root, m.node) }

// Stream starts the far end.
func (m *machine) Stream(ctx context.Context, argv ...string) (io.ReadWriteCloser, error) {
	want := fmt.Sprint([]string{Program, "--workdir=" + m.root, "pod", "link"})
	if fmt.Sprint(argv) != want {
		return nil, fmt.Errorf("%q, want %s", argv, want)
	}
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), farRoot+"="+m.root)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.children, m.streams = append(m.children, c), m.streams+1
	m.last = &childStream{out, in, c}
	return m.last, nil
}

// closeInput closes the standard input of the far end, as the end of this process does.
func (m *machine) closeInput() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last.WriteCloser.Close()
}

type childStream struct {
	io.Reader
	io.WriteCloser
	child *exec.Cmd
}

// Close ends the input of the child, and waits for its end.
func (s *childStream) Close() error {
	s.WriteCloser.Close()
	return s.child.Wait()
}

// kill kills the pod; the next is another one.
func (m *machine) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.children {
		c.Process.Kill() // fails if it has ended
	}
	m.number++
}

// newMachine returns a machine with the folder of a workdir, a workdir of this machine
// whose replica is there, and links to it.
func newMachine(t *testing.T) (*machine, *workdir.Dir, *Links) {
	t.Helper()
	ovs.Need(t) // its far end is a process
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	m := &machine{root: ovs.Dir(t), node: "compute1"}
	if err := os.MkdirAll(filepath.Join(m.Folder(), "var-run", "ovs"), 0o700); err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	state := replica.State{Runtime: "kubernetes", Kinds: []workdir.Kind{workdir.OVS},
		Pod: &replica.Place{Folder: m.Folder()}}
	if err := workdir.WriteJSON(wd.ReplicaFile(), state); err != nil {
		t.Fatal(err)
	}
	links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) { return m, nil })
	t.Cleanup(func() {
		if err := links.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, wd, links
}

// linked returns the workdir with its sockets connected.
func linked(t *testing.T, wd *workdir.Dir, links *Links) *workdir.Dir {
	t.Helper()
	wd = wd.Linked(NewContext(t.Context(), links))
	if err := wd.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return wd
}

func TestSocketsAreThoseOfTheReplica(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server")
	m, wd, links := newMachine(t)
	s := ovs.StartIn(t, filepath.Join(m.Folder(), "var-run", "ovs"))
	s.Vsctl("add-br", "br-there", "--", "set", "bridge", "br-there", "datapath_type=dummy")
	wd = linked(t, wd, links)
	for range 3 {
		out, err := unixctl.Run(t.Context(), wd.VarRun(workdir.OVS), "ovs-vswitchd", "ofproto/list")
		if err != nil || string(out) != "br-there\n" {
			t.Errorf("%q %v", out, err)
		}
	}
	db, err := ovsdb.Connect(t.Context(), wd.Socket(workdir.OVS), ovsdb.OVS)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Select(t.Context(), "Bridge")
	if err != nil || len(rows) != 1 || rows[0].String("name") != "br-there" {
		t.Errorf("%v %v", rows, err)
	}
	if out := ovs.Run(t, "ovs-ofctl", "dump-flows",
		filepath.Join(wd.VarRun(workdir.OVS), "br-there.mgmt")); !strings.Contains(out, "NORMAL") {
		t.Error(out)
	}
	if m.streams != 1 {
		t.Errorf("%d streams", m.streams)
	}
}

// answering listens at a socket and answers each connection with a text.
func answering(t testing.TB, path, text string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, text)
			conn.Close()
		}
	}()
}

func TestOnlySocketsOfReplicasAreReached(t *testing.T) {
	m, wd, links := newMachine(t)
	varRun := filepath.Join(m.Folder(), "var-run")
	outside := filepath.Join(ovs.Dir(t), "out.sock")
	answering(t, outside, "outside")
	answering(t, filepath.Join(m.root, "root.sock"), "root")
	answering(t, filepath.Join(m.Folder(), "wd.sock"), "wd")
	answering(t, filepath.Join(varRun, "ovs", "db.sock"), "replica")
	if err := os.MkdirAll(filepath.Join(m.Folder(), "other", "ovs"), 0o700); err != nil {
		t.Fatal(err)
	}
	answering(t, filepath.Join(m.Folder(), "other", "ovs", "db.sock"), "other")
	for path, content := range map[string]string{"ovs/file": "x", "ovs/evil.pid": "1/../../../wd.sock\x00\n",
		"ovs/ovs-vswitchd.pid": "../db\n"} {
		if err := os.WriteFile(filepath.Join(varRun, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ovs/link.sock": outside, "ovs/rel.sock": "../../wd.sock",
		"out": filepath.Dir(outside), "../../away": filepath.Dir(outside)} {
		if err := os.Symlink(to, filepath.Join(varRun, link)); err != nil {
			t.Fatal(err)
		}
	}
	_, p, err := links.reach(t.Context(), wd)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) string {
		near, local := net.Pipe()
		go p.forward(t.Context(), local, path)
		out, _ := io.ReadAll(near)
		return string(out)
	}
	n := m.node
	if got := get(n + "/var-run/ovs/db.sock"); got != "replica" {
		t.Fatalf("the replica's socket answers %q", got)
	}
	for _, path := range []string{
		"", n, n + "/var-run", n + "/var-run/ovs", n + "/var-run/ovs/", n + "/wd.sock", "root.sock",
		n + "/var-run/ovs/link.sock",
		n + "/var-run/ovs/rel.sock",
		n + "/var-run/ovs/file",
		n + "/var-run/ovs/../../wd.sock",
		n + "/var-run/ovs/evil.pid",
		n + "/var-run/ovs/ovs-vswitchd.pid",
		n + "/var-run/ovs/missing.pid",
		n + "/var-run/../wd.sock",
		n + "/var-run/./wd.sock",
		n + "/other/ovs/db.sock",
		n + "/var-run/out/out.sock",
		"../" + filepath.Base(m.root) + "/var-run/root.sock",
		"./var-run/../root.sock",
		n + "/../var-run/root.sock",
		"away/var-run/./out.sock",
		"/" + n + "/var-run/ovs/db.sock",
		outside,
	} {
		if got := get(path); got != "" {
			t.Errorf("%q answers %q", path, got)
		}
	}
	for _, name := range []string{"", "..", "away", "../" + filepath.Base(m.root)} {
		if found, err := p.list(t.Context(), name); len(found) > 0 {
			t.Errorf("%q: %v %v", name, found, err)
		}
	}
}

// TestSocketsOfAHostilePodStayInTheFolder shows that names from a pod make no file elsewhere.
func TestSocketsOfAHostilePodStayInTheFolder(t *testing.T) {
	_, wd, links := newMachine(t)
	s := links.Link(wd).(*sockets)
	var hostile []socket
	for _, name := range []string{"", ".", "..", "../x", "/tmp/x", "a/b", "x\x00y", strings.Repeat("x", 300)} {
		hostile = append(hostile, socket{Folder: name, Name: "db.sock"}, socket{Folder: "ovs", Name: name},
			socket{Folder: "ovs", Name: name + pidSuffix})
	}
	if err := s.make(append(hostile, socket{Folder: "ovs", Name: "good.sock"})); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxSockets {
		hostile = append(hostile, socket{Folder: "ovs", Name: fmt.Sprint("many", i)})
	}
	if err := s.make(hostile); err == nil {
		t.Errorf("%d sockets are made", len(hostile))
	}
	var made []string
	_ = filepath.WalkDir(os.Getenv("XDG_RUNTIME_DIR"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			made = append(made, e.Name())
		}
		return err
	})
	expect.Equal(t, strings.Join(made, " "), "good.sock lock", "made")
}

func TestRunPassesStreamsAndExitCode(t *testing.T) {
	_, wd, links := newMachine(t)
	big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<19) // more than any window
	var out, errs bytes.Buffer
	exit, err := links.Run(t.Context(), wd, []string{`cat; echo "to stderr" >&2; exit 42`},
		runtime.Command{Stdin: bytes.NewReader(big), Stdout: &out, Stderr: &errs})
	if err != nil || exit != 42 || !bytes.Equal(out.Bytes(), big) || errs.String() != "to stderr\n" {
		t.Errorf("exit %d, %v; %d bytes of %d; %q", exit, err, out.Len(), len(big), errs.String())
	}
	out.Reset()
	// Without input, a program sees its end; one that goes on in the background keeps nothing waiting.
	if exit, err := links.Run(t.Context(), wd, []string{"cat; sleep 60 & echo done"},
		runtime.Command{Stdout: &out, Stderr: &errs}); err != nil || exit != 0 || out.String() != "done\n" {
		t.Errorf("exit %d, %v, %q", exit, err, out.String())
	}
	// Input that the program does not read does not keep it from ending.
	silent, writer := io.Pipe()
	defer writer.Close()
	if exit, err := links.Run(t.Context(), wd, []string{"exit 3"},
		runtime.Command{Stdin: silent, Stdout: &out, Stderr: &errs}); err != nil || exit != 3 {
		t.Errorf("exit %d, %v", exit, err)
	}
}

func TestWordsReachThePodAsTheyAre(t *testing.T) {
	_, wd, links := newMachine(t)
	const want = "\xff $HOME `id` ; 'a' \\ \n"
	var out bytes.Buffer
	script := "printf %s '" + strings.ReplaceAll(want, "'", `'"'"'`) + "'"
	if exit, err := links.Run(t.Context(), wd, []string{script},
		runtime.Command{Stdout: &out, Stderr: io.Discard}); err != nil || exit != 0 || out.String() != want {
		t.Errorf("exit %d, %v, %q, want %q", exit, err, out.String(), want)
	}
	for word, want := range map[string]string{"a\x00b": "NUL", strings.Repeat("x", 300<<10): "on standard input"} {
		if _, err := links.Run(t.Context(), wd, []string{word}, runtime.Command{}); err == nil || errors.Is(err, ErrLost) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v of a command line that can't be sent, want %q", err, want)
		}
	}
}

// TestOutputThatCanNotBeWrittenEndsTheCommand ends a command as "| head" does.
func TestOutputThatCanNotBeWrittenEndsTheCommand(t *testing.T) {
	_, wd, links := newMachine(t)
	path := filepath.Join(t.TempDir(), "pid")
	_, err := links.Run(t.Context(), wd, []string{"echo $$ >" + path + "; exec yes"},
		runtime.Command{Stdout: full{}, Stderr: io.Discard})
	if !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
	pid, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.TrimSpace(string(pid)); !isGone(t, text) {
		t.Errorf("process %s still runs", text)
	}
}

// full is an output without space.
type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestChannelsAreBounded opens more connections than a far end serves: it refuses the rest, and
// serves others once some have ended.
func TestChannelsAreBounded(t *testing.T) {
	_, wd, links := newMachine(t)
	_, p, err := links.reach(t.Context(), wd)
	if err != nil {
		t.Fatal(err)
	}
	var open []ssh.Channel
	for range maxChannels {
		c, requests, err := p.connected().OpenChannel(channelSession, nil)
		if err != nil {
			t.Fatalf("after %d: %v", len(open), err)
		}
		go ssh.DiscardRequests(requests)
		open = append(open, c)
	}
	run := func() error {
		_, err := links.Run(t.Context(), wd, []string{"true"}, runtime.Command{Stdout: io.Discard, Stderr: io.Discard})
		return err
	}
	if err := run(); err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "in progress") {
		t.Errorf("error %v of one channel too many", err)
	}
	open[0].Close()
	ovs.Await(t, "a channel that has ended to count no more", func() bool { return run() == nil })
}

// isGone waits until a process has ended.
func isGone(t *testing.T, pid string) bool {
	t.Helper()
	return nil == ovs.Until(t.Context(), "the end of process "+pid, func() bool {
		raw, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(raw), ") Z ")
	})
}

// first keeps the first line that is written to it.
type first struct {
	text string
	read chan struct{}
}

func (f *first) Write(p []byte) (int, error) {
	if f.text == "" {
		f.text = strings.TrimSpace(string(p))
		close(f.read)
	}
	return len(p), nil
}

func TestRunEndsWithItsContext(t *testing.T) {
	m, wd, links := newMachine(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &first{read: make(chan struct{})}
	context.AfterFunc(ctx, func() {})
	go func() { <-out.read; cancel() }()
	_, err := links.Run(ctx, wd, []string{"echo $$; exec sleep 600"}, runtime.Command{Stdout: out, Stderr: io.Discard})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !isGone(t, out.text) {
		t.Errorf("process %s still runs", out.text)
	}
	// The link serves others.
	var text bytes.Buffer
	if exit, err := links.Run(t.Context(), wd, []string{"echo more"},
		runtime.Command{Stdout: &text, Stderr: io.Discard}); err != nil || exit != 0 || text.String() != "more\n" ||
		m.streams != 1 {
		t.Errorf("exit %d, %v, %q, %d streams", exit, err, text.String(), m.streams)
	}
}

// TestEndedRequestDoesNotWaitForThePod ends what a pod does not answer, as if its kubelet
// hung.
func TestEndedRequestDoesNotWaitForThePod(t *testing.T) {
	_, wd, _ := newMachine(t)
	links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) { return silent{}, nil })
	defer links.Close()
	for what, ask := range map[string]func(ctx context.Context) error{
		"run": func(ctx context.Context) error {
			_, err := links.Run(ctx, wd, []string{"status"},
				runtime.Command{Stdin: strings.NewReader("x"), Stdout: io.Discard, Stderr: io.Discard})
			return err
		},
		"connect": func(ctx context.Context) error { return wd.Linked(NewContext(ctx, links)).Connect(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
}

// silent is a host whose program answers nothing.
type silent struct{}

func (silent) Pod() string    { return "silent" }
func (silent) Folder() string { return "/replicas/n" }
func (silent) String() string { return "pod test/silent" }
func (silent) Stream(context.Context, ...string) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	go io.Copy(io.Discard, far)
	return near, nil
}

// TestSilentPodCountsAsLost asks pods about a command, which they do not end. The clock is not the
// real one.
func TestSilentPodCountsAsLost(t *testing.T) {
	_, wd, _ := newMachine(t)
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) {
				return sending{ignoresRequests: !answers, answer: func(asked ssh.NewChannel) { asked.Accept() }}, nil
			})
			defer time.Sleep(pause) // in which keepAlive sees the end
			defer links.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := links.Run(ctx, wd, []string{"status"}, runtime.Command{Stdout: io.Discard, Stderr: io.Discard})
			if want := map[bool]error{true: context.DeadlineExceeded, false: ErrLost}[answers]; !errors.Is(err, want) {
				t.Errorf("the pod answers: %t: error %v, want %v", answers, err, want)
			}
			if !answers && !strings.Contains(err.Error(), "no answer for 30s") {
				t.Errorf("error %v, want the reason", err)
			}
		})
	}
}

// TestCommandThatCanNotRunIsNoLostConnection runs a command in a pod that has no terminals left,
// for example.
func TestCommandThatCanNotRunIsNoLostConnection(t *testing.T) {
	_, wd, links := newMachine(t)
	_, inside := newTerminal(t)
	_, err := links.Run(t.Context(), wd, []string{missingProgram},
		runtime.Command{Stdin: inside, Stdout: io.Discard, Terminal: true})
	if !errors.Is(err, errRun) || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v, want %q and the reason", err, errRun)
	}
}

func TestFarEndEndsWhatRunsWhenTheNearEndIsKilled(t *testing.T) {
	m, wd, links := newMachine(t)
	out := &first{read: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		_, err := links.Run(t.Context(), wd, []string{"sleep 600 & echo $!; wait"},
			runtime.Command{Stdout: out, Stderr: io.Discard})
		failed <- err
	}()
	<-out.read
	m.closeInput()
	if !isGone(t, out.text) {
		t.Errorf("process %s still runs", out.text)
	}
	if err := <-failed; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), m.String()) {
		t.Error(err)
	}
}

// TestLossCountsBeforeSocketsEnd kills pods while a client is connected to a socket: when the client
// sees the end of its connection, the sockets do not count as connected any more.
func TestLossCountsBeforeSocketsEnd(t *testing.T) {
	m, wd, links := newMachine(t)
	held, err := net.Listen("unix", filepath.Join(m.Folder(), "var-run", "ovs", "db.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	wd = wd.Linked(NewContext(t.Context(), links))
	for round := range 30 {
		if err := wd.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		client, err := unixctl.Dial(t.Context(), wd.Socket(workdir.OVS))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := held.Accept(); err != nil {
			t.Fatal(err)
		}
		m.kill()
		_, _ = io.ReadAll(client) // until its end, however that is
		if wd.Connected() {
			t.Fatalf("round %d: the socket ended, and counts as connected", round)
		}
		client.Close()
	}
}

func TestLostPodIsConnectedAnew(t *testing.T) {
	m, wd, links := newMachine(t)
	path := filepath.Join(m.Folder(), "var-run", "ovs", "db.sock")
	answering(t, path, "first")
	wd = linked(t, wd, links)
	get := func() string {
		conn, err := unixctl.Dial(t.Context(), wd.Socket(workdir.OVS))
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		out, _ := io.ReadAll(conn)
		return string(out)
	}
	if got := get(); got != "first" || !wd.Connected() || wd.Connections() != 1 {
		t.Fatalf("%q, connected %v, %d", got, wd.Connected(), wd.Connections())
	}
	m.kill()
	ovs.Await(t, "the loss of the pod", func() bool { return !wd.Connected() })
	if got := get(); got != "" || wd.Connected() {
		t.Fatalf("a lost pod answers %q", got)
	}
	os.Remove(path)
	answering(t, path, "second")
	if err := wd.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get(); got != "second" || wd.Connections() != 2 || m.streams != 2 {
		t.Errorf("%q, %d connections, %d streams", got, wd.Connections(), m.streams)
	}
}

// TestClusterIsAskedAboutPodsThatDoNotAnswer counts how hosts are opened: at the first attempt
// without asking the cluster.
func TestClusterIsAskedAboutPodsThatDoNotAnswer(t *testing.T) {
	for recorded, host := range map[string]Host{"answers": nil, "is gone": gone{}, "is silent": silent{},
		"runs something else": printing{"Usage: something else\n"}} {
		t.Run("the recorded pod "+recorded, func(t *testing.T) {
			m, wd, _ := newMachine(t)
			var attempts []Attempt
			links := New(func(_ context.Context, _ *workdir.Dir, a Attempt) (Host, error) {
				attempts = append(attempts, a)
				if a == First && host != nil {
					return host, nil
				}
				return m, nil
			})
			defer links.Close()
			if links.patience = time.Hour; host == (silent{}) {
				links.patience = 10 * time.Millisecond
			}
			run := func(want ...Attempt) {
				t.Helper()
				exit, err := links.Run(t.Context(), wd, []string{"exit 3"}, runtime.Command{Stdout: io.Discard, Stderr: io.Discard})
				if err != nil || exit != 3 || !slices.Equal(attempts, want) {
					t.Fatalf("exit %d, %v, attempts %v, want %v", exit, err, attempts, want)
				}
			}
			want := []Attempt{First}
			if host != nil {
				want = append(want, Unreached)
			}
			run(want...)
			run(want...)
			ended := links.linkTo(m).conn.ended
			m.kill()
			<-ended
			run(append(want, Lost)...)
		})
	}
}

// gone is the host of a pod that is gone.
type gone struct{ silent }

func (gone) Stream(context.Context, ...string) (io.ReadWriteCloser, error) {
	return nil, errors.New("pods \"gone\" not found")
}

func TestFolderIsPrivateAndRemoved(t *testing.T) {
	m, wd, links := newMachine(t)
	parent := os.Getenv("XDG_RUNTIME_DIR")
	left, others, fresh := filepath.Join(parent, prefix+"1"), filepath.Join(parent, prefix+"2"),
		filepath.Join(parent, prefix+"3")
	leftNow, beingMade := filepath.Join(parent, prefix+"4"), filepath.Join(parent, making+"5")
	for _, path := range []string{left, others, fresh, leftNow, beingMade} {
		if err := os.MkdirAll(filepath.Join(path, "1", "ovs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(parent, filepath.Join(parent, prefix+"link")); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, path := range []string{left, others} {
		if err := os.WriteFile(filepath.Join(path, lockName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{leftNow, beingMade} { // a moment ago
		if err := os.WriteFile(filepath.Join(path, lockName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	used, err := os.OpenFile(filepath.Join(others, lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	if err := syscall.Flock(int(used.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	answering(t, filepath.Join(m.Folder(), "var-run", "ovs", "db.sock"), "")
	varRuns := linked(t, wd, links).VarRuns()
	if info, err := os.Stat(filepath.Dir(varRuns)); err != nil || info.Mode().Perm() != 0o700 ||
		filepath.Dir(filepath.Dir(varRuns)) != parent {
		t.Errorf("%s: %v %v", varRuns, info, err)
	}
	for _, path := range []string{left, leftNow} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the folder of a killed command is left: %s", path)
		}
	}
	if err := links.Close(); err != nil {
		t.Fatal(err)
	}
	if now, _ := filepath.Glob(filepath.Join(parent, "*")); strings.Join(now,
		" ") != strings.Join([]string{others, fresh, filepath.Join(parent, prefix+"link"), beingMade}, " ") {
		t.Errorf("%q", now)
	}
	if err := wd.Linked(NewContext(t.Context(), links)).Connect(t.Context()); err == nil {
		t.Error("closed links connect")
	}
}

// TestCauseOfALostConnectionIsNamed ends streams as package pods does, both ways at once.
func TestCauseOfALostConnectionIsNamed(t *testing.T) {
	_, wd, _ := newMachine(t)
	for range 100 {
		links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) { return failing{}, nil })
		_, err := links.Run(t.Context(), wd, []string{"status"}, runtime.Command{})
		if !errors.Is(err, ErrLost) || !errors.Is(err, errKubelet) {
			t.Fatalf("error %v, want %v: %v", err, ErrLost, errKubelet)
		}
		links.Close()
	}
}

var errKubelet = errors.New("the kubelet does not answer")

// failing is a host whose node is gone.
type failing struct{ printing }

func (failing) Stream(context.Context, ...string) (io.ReadWriteCloser, error) {
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	go func() {
		time.Sleep(time.Millisecond)
		out.CloseWithError(errKubelet)
		in.CloseWithError(errKubelet)
	}()
	return struct {
		io.Reader
		io.WriteCloser
	}{fromProgram, toProgram}, nil
}

// TestFarEndOfAnotherProgram shows what happens if the program in the pod is no far end.
func TestFarEndOfAnotherProgram(t *testing.T) {
	_, wd, _ := newMachine(t)
	for what, text := range map[string]string{"garbage": "Usage: something else\n" + strings.Repeat("x", 100),
		"nothing": ""} {
		links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) { return printing{text}, nil })
		err := wd.Linked(NewContext(t.Context(), links)).Connect(t.Context())
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "pod test/printing") {
			t.Errorf("%s: %v", what, err)
		}
		links.Close()
	}
}

// printing is a host whose program prints a text and ends.
type printing struct{ text string }

func (printing) Pod() string    { return "printing" }
func (printing) Folder() string { return "/replicas/n" }
func (printing) String() string { return "pod test/printing" }
func (p printing) Stream(context.Context, ...string) (io.ReadWriteCloser, error) {
	return struct {
		io.Reader
		io.WriteCloser
	}{strings.NewReader(p.text), discard{}}, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
