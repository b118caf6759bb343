package file

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"ovs-offline/internal/ovsdb"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/internal/command"
)

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// needTools skips a test where Open vSwitch is not installed.
func needTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-vsctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	if _, err := os.Stat(ovsSchema); err != nil {
		t.Skip(err)
	}
}

// run runs a tool that has to succeed and returns what it printed.
func run(t *testing.T, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, stderr.String())
	}
	return string(out)
}

// server is a real ovsdb-server that serves one file.
type server struct {
	remote, ctl, log string
	process          *os.Process
	done             chan struct{}
}

// serve starts a server and returns when it answers. It ends with the test.
func serve(t *testing.T, file string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "ovsdb") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sock := filepath.Join(dir, "s")
	s := &server{"unix:" + sock, filepath.Join(dir, "c"), filepath.Join(dir, "log"), nil, make(chan struct{})}
	cmd := exec.Command("ovsdb-server", "--remote=punix:"+sock, "--unixctl="+s.ctl,
		"--log-file="+s.log, "-vconsole:off", "-vsyslog:off", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = cmd.Process
	go func() { cmd.Wait(); close(s.done) }()
	t.Cleanup(s.stop)
	for range 1000 {
		if conn, err := net.Dial("unix", sock); err == nil {
			conn.Close()
			return s
		}
		select {
		case <-s.done:
			t.Fatalf("ovsdb-server %s ended: %s", file, stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("ovsdb-server %s does not answer", file)
	return nil
}

func (s *server) stop() {
	s.process.Kill()
	<-s.done
}

// content returns every row of every table with its UUID, in a fixed order.
func (s *server) content(t *testing.T, db string) string {
	t.Helper()
	run(t, "ovsdb-client", "--timeout=20", "wait", s.remote, db, "connected")
	return run(t, "ovsdb-client", "--timeout=20", "-f", "json", "--pretty", "dump", s.remote, db)
}

// vsctl runs ovs-vsctl commands, each a transaction of its own.
func (s *server) vsctl(t *testing.T, commands ...string) {
	t.Helper()
	for _, command := range commands {
		run(t, append([]string{"ovs-vsctl", "--timeout=20", "--no-wait", "--db=" + s.remote}, strings.Fields(command)...)...)
	}
}

// served returns the content of a standalone file as a real server serves it, and
// checks that the server logs no warning.
func served(t *testing.T, file string) string {
	t.Helper()
	s := serve(t, file)
	content := s.content(t, ovsdb.OVS)
	log := read(t, s.log)
	if bytes.Contains(log, []byte("|WARN|")) || bytes.Contains(log, []byte("|ERR|")) {
		t.Errorf("ovsdb-server complains of %s:\n%s", file, log)
	}
	s.stop()
	return content
}

// populate makes a network of eight transactions, whose rows refer to each
// other and hold addresses and names.
func (s *server) populate(t *testing.T) {
	t.Helper()
	s.vsctl(t,
		"init",
		"set open . external_ids:hostname=worker1.example.com external_ids:ovn-encap-ip=10.0.0.1",
		"add-br br-int -- set bridge br-int other_config:hwaddr=aa:bb:cc:dd:ee:01",
		"add-port br-int vx -- set interface vx type=vxlan options:remote_ip=10.0.0.2 options:key=7",
		"add-port br-int p1 -- set interface p1 external_ids:attached-mac=aa:bb:cc:dd:ee:02",
		"set interface p1 external_ids:iface-id=one external_ids:attached-mac=aa:bb:cc:dd:ee:03",
		"del-port br-int vx",
		"add-port br-int p2 tag=5",
	)
}

// standalone makes a populated standalone file, as a live server leaves it, and
// returns the content that the server served.
func standalone(t *testing.T) (file, content string) {
	t.Helper()
	needTools(t)
	file = filepath.Join(t.TempDir(), "conf.db")
	run(t, "ovsdb-tool", "create", file, ovsSchema)
	s := serve(t, file)
	s.populate(t)
	content = s.content(t, ovsdb.OVS)
	s.stop()
	return file, content
}

// clustered makes the file of a cluster's only member.
func clustered(t *testing.T) (file string, s *server) {
	t.Helper()
	needTools(t)
	dir, err := os.MkdirTemp("", "raft")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file = filepath.Join(dir, "db")
	run(t, "ovsdb-tool", "create-cluster", file, ovsSchema, "unix:"+filepath.Join(dir, "raft"))
	s = serve(t, file)
	run(t, "ovsdb-client", "--timeout=20", "wait", s.remote, ovsdb.OVS, "connected")
	s.populate(t)
	return file, s
}

// standaloneFile runs Standalone into a fresh file.
func standaloneFile(t *testing.T, src string) (dst string, info Info, remarks []string) {
	t.Helper()
	dst = filepath.Join(t.TempDir(), "fresh.db")
	info, remarks, err := Standalone(t.Context(), src, dst)
	if err != nil {
		t.Fatalf("Standalone: %v (remarks %q)", err, remarks)
	}
	return dst, info, remarks
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write makes a file of parts.
func write(t *testing.T, parts ...[]byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "made.db")
	if err := os.WriteFile(file, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// split splits a file into its records by a simple rule of its own.
func split(t *testing.T, file string) [][]byte {
	t.Helper()
	text := read(t, file)
	starts := regexp.MustCompile(`(?m)^OVSDB (JSON|CLUSTER) `).FindAllIndex(text, -1)
	var parts [][]byte
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		parts = append(parts, text[start[0]:end:end])
	}
	return parts
}

// rec returns an undamaged record.
func rec(magic, body string) []byte {
	body += "\n"
	return append(formatHeader(magic, []byte(body)), body...)
}

// differ fails the test where two contents differ, with the first differing line.
func differ(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(a) || i < len(b); i++ {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			t.Fatalf("served content differs from the live one in line %d:\n got %s\nwant %s", i+1, x, y)
		}
	}
}

// wantRemark fails unless one remark holds all words.
func wantRemark(t *testing.T, remarks []string, words ...string) {
	t.Helper()
	for _, remark := range remarks {
		all := true
		for _, word := range words {
			all = all && strings.Contains(remark, word)
		}
		if all {
			return
		}
	}
	t.Errorf("no remark with %q in:\n%s", words, strings.Join(remarks, "\n"))
}

func noRemarks(t *testing.T, remarks []string) {
	t.Helper()
	if len(remarks) > 0 {
		t.Errorf("remarks about an undamaged file: %s", fmt.Sprint(remarks))
	}
}

// local runs the tools that are installed here.
func local(ctx context.Context, argv ...string) ([]byte, error) {
	return command.Run(ctx, command.Command{Argv: argv})
}
