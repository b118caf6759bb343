package sosgen

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// head is the line before each record of a database file.
var head = regexp.MustCompile(`(?m)^OVSDB (JSON|CLUSTER) [0-9]+ \S+\n`)

// records splits a database file.
func records(file []byte) (magic string, bodies [][]byte) {
	at := head.FindAllSubmatchIndex(file, -1)
	for i, m := range at {
		end := len(file)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		magic = string(file[m[2]:m[3]])
		bodies = append(bodies, file[m[1]:end])
	}
	return magic, bodies
}

func seal(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "OVSDB %s %d %x\n", magic, len(body), sha1.Sum(body)), body...)
}

// Resealed is a database file with other words in it, and sums to match: what
// the database of another node is.
func Resealed(file []byte, change func([]byte) []byte) []byte {
	var out []byte
	magic, bodies := records(file)
	for _, body := range bodies {
		out = append(out, seal(magic, change(body))...)
	}
	return out
}

// Torn is a database file whose copy ended in the middle of the last record.
func Torn(file []byte) []byte {
	_, bodies := records(file)
	last := len(bodies[len(bodies)-1])
	return bytes.Clone(file[:len(file)-last+last/2])
}

// Tail is what is left of a file that sos cut at a limit: its end.
func Tail(file []byte, limit int) []byte { return bytes.Clone(file[max(0, len(file)-limit):]) }

// Named is an OVN database of an interconnect zone: it says which node's.
func Named(ctx context.Context, file []byte, database, node string) ([]byte, error) {
	table := globalTable(database)
	op := fmt.Sprintf(`[%q, {"op": "mutate", "table": %q, "where": [], "mutations": [["options", "insert", ["map", [["name", %q]]]]]}]`, database, table, node)
	return edited(ctx, file, "transact", op)
}

// globalTable is the table of one row that each database has.
func globalTable(database string) string {
	return map[string]string{OVS: "Open_vSwitch", NB: "NB_Global", SB: "SB_Global"}[database]
}

// edited runs an ovsdb-tool command on a copy of a file.
func edited(ctx context.Context, file []byte, verb, argument string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "shapes")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return nil, err
	}
	if err := tool(ctx, "ovsdb-tool", verb, path, argument); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func tool(ctx context.Context, argv ...string) error {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// Members are the files of a real cluster of two.
type Members struct {
	Leader, Follower []byte
	JoinOnly         []byte // of a member that has not joined yet
}

// Cluster makes a cluster of a standalone database, with real servers: the
// leader starts from the rows, then another key of the global row's
// external_ids is set and taken back, so that the logs hold entries of their own.
func Cluster(ctx context.Context, file []byte, database string) (Members, error) {
	var m Members
	dir, err := os.MkdirTemp("", "raft") // a short path: it goes into socket names
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("plain"), file, 0o600); err != nil {
		return m, err
	}
	if err := tool(ctx, "ovsdb-tool", "create-cluster", at("1"), at("plain"), "unix:"+at("raft1")); err != nil {
		return m, err
	}
	if err := tool(ctx, "ovsdb-tool", "join-cluster", at("2"), database, "unix:"+at("raft2"), "unix:"+at("raft1")); err != nil {
		return m, err
	}
	if m.JoinOnly, err = os.ReadFile(at("2")); err != nil {
		return m, err
	}
	for _, n := range []string{"1", "2"} {
		end, err := serveMember(ctx, dir, n, database)
		if err != nil {
			return m, err
		}
		defer end()
	}
	if err := stir(ctx, "unix:"+at("sock1"), database); err != nil {
		return m, err
	}
	return m, m.read(ctx, dir)
}

// serveMember runs ovsdb-server on a member's file until it is connected.
func serveMember(ctx context.Context, dir, n, database string) (end func(), err error) {
	at := func(name string) string { return filepath.Join(dir, name+n) }
	server := exec.CommandContext(ctx, "ovsdb-server", filepath.Join(dir, n), "--remote=punix:"+at("sock"),
		"--unixctl="+at("ctl"), "--no-chdir", "-vconsole:off", "-vsyslog:off", "--log-file="+at("log"))
	if err := server.Start(); err != nil {
		return nil, err
	}
	end = func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
	}
	if err := listens(ctx, at("sock")); err == nil {
		err = tool(ctx, "ovsdb-client", "--timeout=20", "wait", "unix:"+at("sock"), database, "connected")
		if err == nil {
			return end, nil
		}
	}
	end()
	return nil, err
}

// listens waits until a socket can be connected to.
func listens(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			return c.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", socket, ctx.Err())
		}
	}
}

// stir changes the global row and changes it back.
func stir(ctx context.Context, remote, database string) error {
	table := globalTable(database)
	for _, mutation := range []string{`["external_ids", "insert", ["map", [["stirred", "yes"]]]]`, `["external_ids", "delete", ["set", ["stirred"]]]`} {
		op := fmt.Sprintf(`[%q, {"op": "mutate", "table": %q, "where": [], "mutations": [%s]}]`, database, table, mutation)
		if err := tool(ctx, "ovsdb-client", "--timeout=20", "transact", remote, op); err != nil {
			return err
		}
	}
	return nil
}

// read takes the members' files once the follower knows what was committed.
func (m *Members) read(ctx context.Context, dir string) (err error) {
	deadline, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if m.Leader, err = os.ReadFile(filepath.Join(dir, "1")); err != nil {
			return err
		}
		if m.Follower, err = os.ReadFile(filepath.Join(dir, "2")); err != nil {
			return err
		}
		if lastCommit(m.Follower) == lastCommit(m.Leader) && lastCommit(m.Leader) == lastEntry(m.Leader) {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline.Done():
			return fmt.Errorf("the follower did not catch up: %w", deadline.Err())
		}
	}
}

var (
	commits = regexp.MustCompile(`"commit_index":([0-9]+)`)
	entries = regexp.MustCompile(`"index":([0-9]+)`)
	terms   = regexp.MustCompile(`"term":([0-9]+)`)
)

func lastCommit(file []byte) int { return lastNumber(commits, file) }
func lastEntry(file []byte) int  { return lastNumber(entries, file) }

func lastNumber(pattern *regexp.Regexp, file []byte) int {
	n := 0
	for _, m := range pattern.FindAllSubmatch(file, -1) {
		n, _ = strconv.Atoi(string(m[1]))
	}
	return n
}

// Unsettled adds to a member's log what a leader wrote that lost its place: an
// entry that a later leader replaced, one that nobody committed, and the half
// of a third where torn is set. None of them was ever served.
func Unsettled(member []byte, database string, torn bool) []byte {
	table := globalTable(database)
	index, term := lastEntry(member), lastNumber(terms, member)
	entry := func(index, term int) []byte {
		return seal("CLUSTER", fmt.Appendf(nil, `{"term":%d,"index":%d,"eid":"0190fe17-d1ae-7091-a034-%012d","data":[null,`+
			`{"%s":{"%08d-0000-4000-8000-000000000000":{"external_ids":["map",[["never","served"]]]}}}]}`, term, index, index*10+term, table, index))
	}
	out := bytes.Clone(member)
	out = append(out, entry(index+1, term)...)
	out = append(out, entry(index+2, term)...)
	out = append(out, entry(index+1, term+1)...)
	if torn {
		last := entry(index+2, term+1)
		out = append(out, last[:len(last)/2]...)
	}
	return out
}
