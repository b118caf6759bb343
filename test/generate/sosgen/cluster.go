package sosgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// Members are the database files of a cluster of two servers.
type Members struct {
	Leader, Follower []byte
	JoinOnly         []byte // of a member that has not joined the cluster yet
	Status           []byte // what cluster/status printed of the follower
}

// Cluster converts a standalone database into a cluster, with real servers. The
// leader starts from the rows. Then a key of the global row's external_ids is
// added and deleted, so that the logs hold entries of their own.
func Cluster(tb testing.TB, file []byte, database string) Members {
	tb.Helper()
	m, servers := startCluster(tb, file, database)
	for _, s := range servers {
		s.Stop()
	}
	return m
}

// Apart works like Cluster. The status of the follower is the one after the leader stopped.
func Apart(tb testing.TB, file []byte, database string) Members {
	tb.Helper()
	m, servers := startCluster(tb, file, database)
	servers[0].Stop()
	ovs.Await(tb, "the follower to know that its leader has stopped", func() bool {
		m.Status = status(servers[1], database)
		return bytes.Contains(m.Status, []byte("\nLeader: unknown\n"))
	})
	servers[1].Stop()
	return m
}

func startCluster(tb testing.TB, file []byte, database string) (m Members, servers []*ovs.Server) {
	tb.Helper()
	dir := ovs.Dir(tb)
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("standalone"), file, 0o600); err != nil {
		tb.Fatal(err)
	}
	ovs.Run(tb, "ovsdb-tool", "create-cluster", at("1"), at("standalone"), "unix:"+at("raft1"))
	ovs.Run(tb, "ovsdb-tool", "join-cluster", at("2"), database, "unix:"+at("raft2"), "unix:"+at("raft1"))
	m.JoinOnly = readFile(tb, at("2"))
	for _, n := range []string{"1", "2"} {
		s := ovs.Serve(tb, at(n))
		s.Run("ovsdb-client", ovs.Timeout(), "wait", s.Remote, database, "connected")
		servers = append(servers, s)
	}
	changeGlobalRow(servers[0], database)
	m.read(tb, at("1"), at("2"))
	m.Status = status(servers[1], database)
	return m, servers
}

func status(s *ovs.Server, database string) []byte {
	return []byte(s.Run("ovs-appctl", "-t", "ovsdb-server", "cluster/status", database))
}

// changeGlobalRow changes the global row and changes it back.
func changeGlobalRow(s *ovs.Server, database string) {
	for _, mutation := range []string{`["external_ids", "insert", ["map", [["changed", "yes"]]]]`, `["external_ids", "delete", ["set", ["changed"]]]`} {
		s.Run("ovsdb-client", ovs.Timeout(), "transact", s.Remote,
			fmt.Sprintf(`[%q, {"op": "mutate", "table": %q, "where": [], "mutations": [%s]}]`, database, globalTable(database), mutation))
	}
}

// read reads the members' files once the follower has every committed entry.
func (m *Members) read(tb testing.TB, leader, follower string) {
	tb.Helper()
	ovs.Await(tb, "the follower to have what the leader has", func() bool {
		m.Leader, m.Follower = readFile(tb, leader), readFile(tb, follower)
		return lastCommit(m.Follower) == lastCommit(m.Leader) && lastCommit(m.Leader) == lastEntry(m.Leader)
	})
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return body
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

// WithUncommitted appends to a member's log entries that were never served: one
// that a later leader replaced, one that was not committed, the one that replaced
// the first, and, if torn is set, the first half of another.
func WithUncommitted(member []byte, database string, torn bool) []byte {
	table := globalTable(database)
	index, term := lastEntry(member), lastNumber(terms, member)
	entry := func(index, term int) []byte {
		return record("CLUSTER", fmt.Appendf(nil, `{"term":%d,"index":%d,"eid":"0190fe17-d1ae-7091-a034-%012d","data":[null,`+
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
