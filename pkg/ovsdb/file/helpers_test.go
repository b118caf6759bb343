package file

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"

	"ovs-offline/internal/command"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

const ovsSchema = ovs.Schema

// needTools skips a test where Open vSwitch is not installed.
func needTools(t *testing.T) {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-vsctl")
}

// server is an ovsdb-server with the paths of its sockets.
type server struct {
	*ovs.Server
	remote, ctl string
}

// serve starts a server and returns when it answers. It ends with the test.
func serve(t *testing.T, file string) *server {
	t.Helper()
	dir := ovs.Dir(t)
	ctl := filepath.Join(dir, "ctl")
	s := ovs.ServeIn(t, dir, file, "--unixctl="+ctl)
	return &server{s, s.Remote, ctl}
}

func (s *server) stop() { s.Stop() }

// content returns every row of every table with its UUID, in a fixed order.
func (s *server) content(t *testing.T, db string) string {
	t.Helper()
	return s.Content(db)
}

// vsctl runs ovs-vsctl commands, each a transaction of its own.
func (s *server) vsctl(t *testing.T, commands ...string) {
	t.Helper()
	for _, command := range commands {
		ovs.Run(t, append([]string{"ovs-vsctl", ovs.Timeout(), "--no-wait", "--db=" + s.remote},
			strings.Fields(command)...)...)
	}
}

// served returns the content of a standalone file as a real server serves it, and
// checks that the server logs no warning.
func served(t *testing.T, file string) string {
	t.Helper()
	s := serve(t, file)
	content := s.content(t, ovsdb.OVS)
	if log := s.Log(); strings.Contains(log, "|WARN|") || strings.Contains(log, "|ERR|") {
		t.Errorf("ovsdb-server complains about %s:\n%s", file, log)
	}
	s.stop()
	return content
}

// populate runs eight transactions whose rows refer to each other and hold
// addresses and names.
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
	ovs.Run(t, "ovsdb-tool", "create", file, ovsSchema)
	s := serve(t, file)
	s.populate(t)
	content = s.content(t, ovsdb.OVS)
	s.stop()
	return file, content
}

// clustered starts the only member of a cluster, and returns its file.
func clustered(t *testing.T) (file string, s *server) {
	t.Helper()
	needTools(t)
	dir := ovs.Dir(t)
	file = filepath.Join(dir, "db")
	ovs.Run(t, "ovsdb-tool", "create-cluster", file, ovsSchema, "unix:"+filepath.Join(dir, "raft"))
	s = serve(t, file)
	ovs.Run(t, "ovsdb-client", ovs.Timeout(), "wait", s.remote, ovsdb.OVS, "connected")
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

// write makes a file that consists of the parts.
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

// differ fails the test if two contents differ, and prints the first differing line.
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

// wantRemark fails the test unless one remark holds all words.
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
	expect.Equal(t, remarks, nil, "remarks about an undamaged file", fmt.Sprint(remarks))
}

// local is a Tool that runs the tools of this machine.
func local(ctx context.Context, argv ...string) ([]byte, error) {
	return command.Run(ctx, command.Command{Argv: argv})
}
