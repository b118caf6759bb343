package raft

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

const (
	serverA = "aaaaaaaa-0000-4000-8000-000000000001"
	serverB = "bbbbbbbb-0000-4000-8000-000000000002"
	cluster = "cccccccc-0000-4000-8000-000000000003"
	eid     = "eeeeeeee-0000-4000-8000-%012d"
)

func record(body string) string {
	body += "\n"
	return fmt.Sprintf("OVSDB CLUSTER %d %x\n%s", len(body), sha1.Sum([]byte(body)), body)
}

// header returns the first record of a server of a cluster of two.
func header(server string) string {
	return record(fmt.Sprintf(`{"server_id":%q,"cluster_id":%q,"local_address":"tcp:10.0.0.1:6643","name":"T","prev_servers":{%q:"tcp:10.0.0.1:6643",%q:"tcp:10.0.0.2:6643"},`+
		`"prev_index":1,"prev_term":1,"prev_eid":"`+eid+
		`","prev_data":[{"name":"T","version":"1.0.0","tables":{"t":{"columns":{"c":{"type":"string"}}}}},{}]}`, server,
		cluster, serverA, serverB, 1))
}

func entry(term, index int64) string {
	return record(fmt.Sprintf(`{"term":%d,"index":%d,"eid":"`+eid+
		`","data":[null,{"_date":%d,"t":{"%08d-0000-4000-8000-000000000000":{"c":"x"}}}]}`, term, index, index,
		1700000000000+index, index))
}

func commit(index int64) string     { return record(fmt.Sprintf(`{"commit_index":%d}`, index)) }
func vote(t int64, s string) string { return record(fmt.Sprintf(`{"term":%d,"vote":%q}`, t, s)) }
func lead(t int64, s string) string { return record(fmt.Sprintf(`{"term":%d,"leader":%q}`, t, s)) }

func write(t testing.TB, name string, parts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesAreJudgedAsOvsdbToolJudgesThem compares with check-cluster: a file that it refuses is refused
// or contradicts itself, and no other is.
func TestFilesAreJudgedAsOvsdbToolJudgesThem(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	h := header(serverA)
	for name, c := range map[string]struct {
		text []string
		want string // part of the reason, "" for a sound file
	}{
		"sound": {[]string{h, vote(2, serverA), lead(2, serverA), entry(2, 2), commit(2),
			entry(2, 3)}, ""},
		"entries that were taken back": {[]string{h, entry(1, 2), entry(1, 3), vote(2, serverB), entry(2, 2), commit(2)},
			""},
		"the last committed entry again": {[]string{h, entry(1, 2), commit(2), entry(1, 2)}, ""},
		"a committed entry taken back": {[]string{h, entry(1, 2), entry(1, 3), commit(3), entry(2, 2)},
			"those up to 3 are committed"},
		"entries missing":               {[]string{h, entry(1, 2), entry(1, 4)}, "are lost"},
		"an earlier term":               {[]string{h, entry(3, 2), entry(2, 3)}, "after an entry of term 3"},
		"the commit index goes back":    {[]string{h, entry(1, 2), entry(1, 3), commit(3), commit(2)}, "back from 3 to 2"},
		"the commit index is after all": {[]string{h, entry(1, 2), commit(3)}, "the log ends at entry 2"},
		"two votes":                     {[]string{h, entry(1, 2), vote(2, serverA), vote(2, serverB)}, "a second server"},
		"the same vote again":           {[]string{h, entry(1, 2), vote(2, serverA), vote(2, serverA)}, ""},
		"a vote for an earlier term":    {[]string{h, entry(1, 2), vote(3, serverA), vote(2, serverA)}, "the term was 3"},
		"two leaders":                   {[]string{h, entry(1, 2), lead(2, serverA), lead(2, serverB)}, "another leader"},
		"a leader that takes entries back": {[]string{h, vote(2, serverA), lead(2, serverA), entry(2, 2), entry(2, 3),
			entry(2, 2)}, "while the server is the leader"},
		"the server has left": {[]string{h, entry(1, 2), record(`{"note":"left"}`)}, ""},
		"a server that is not listed": {[]string{strings.Replace(header("dddddddd-0000-4000-8000-000000000004"), "", "",
			1), entry(1, 2)}, "not listed"},
	} {
		path := write(t, "m.db", c.text...)
		m, err := Read(t.Context(), nil, path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		why := m.Refused + m.Contradiction
		if !m.Listed() {
			why += "not listed"
		}
		if missing := name == "entries missing" || name == "the commit index is after all"; m.Gap != missing {
			t.Errorf("%s: entries are missing: %v", name, m.Gap)
		}
		if c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q", name, why)
		}
		if out, err := exec.Command("ovsdb-tool", "check-cluster", path).CombinedOutput(); (err != nil) != (why != "") {
			t.Errorf("%s: we say %q, and check-cluster %v: %s", name, why, err, out)
		}
	}
}

// TestTwoFilesAreJudgedAsOvsdbToolJudgesThem compares pairs of files.
func TestTwoFilesAreJudgedAsOvsdbToolJudgesThem(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	a, b := header(serverA), header(serverB)
	other := strings.NewReplacer(`"c":"x"`, `"c":"y"`)
	for name, c := range map[string]struct {
		a, b []string
		want string
	}{
		"equal": {[]string{a, entry(1, 2), entry(2, 3), commit(3)},
			[]string{b, entry(1, 2), entry(2, 3)}, ""},
		"one is behind": {[]string{a, entry(1, 2), entry(2, 3), commit(3)}, []string{b, entry(1, 2)}, ""},
		"uncommitted entries differ": {[]string{a, entry(1, 2), vote(2, serverA), entry(2, 3)},
			[]string{b, entry(1, 2), vote(3, serverB), entry(3, 3)}, ""},
		"entries of one term differ": {[]string{a, entry(1, 2), entry(1, 3)},
			[]string{b, record(strings.SplitN(other.Replace(entry(1, 2)), "\n", 2)[1]), entry(1, 3)},
			"entries from 2 on differ"},
		"two leaders of a term": {[]string{a, entry(1, 2), vote(2, serverA), lead(2, serverA)},
			[]string{b, entry(1, 2), vote(2, serverB), lead(2, serverB)}, "two leaders"},
		"a leader lacks an entry": {[]string{a, entry(1, 2), entry(1, 3), commit(3)},
			[]string{b, entry(1, 2), vote(2, serverB), lead(2, serverB), entry(2, 3)}, "and entry 3 was committed"},
		"the order of columns": {[]string{a,
			record(`{"term":1,"index":2,"eid":"` + fmt.Sprintf(eid, 2) + `","data":[null,{"t":{},"_date":5}]}`)},
			[]string{b, record(`{"term":1,"index":2,"eid":"` + fmt.Sprintf(eid, 2) + `","data":[null,{"_date":5,"t":{}}]}`)},
			""},
	} {
		pathA, pathB := write(t, "a.db", c.a...), write(t, "b.db", c.b...)
		var members []*Member
		for _, path := range []string{pathA, pathB} {
			m, err := Read(t.Context(), nil, path)
			if err != nil || m.Refused != "" {
				t.Fatalf("%s: %v %v", name, err, m)
			}
			members = append(members, m)
		}
		found, err := Contradictions(t.Context(), members)
		if err != nil {
			t.Fatal(err)
		}
		why := ""
		for _, one := range found {
			why += one.What + "; "
		}
		if c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q", name, why)
		}
		if out, err := exec.Command("ovsdb-tool", "check-cluster", pathA,
			pathB).CombinedOutput(); (err != nil) != (why != "") {
			t.Errorf("%s: we say %q, and check-cluster %v: %s", name, why, err, out)
		}
	}
}

func TestStateOfAMember(t *testing.T) {
	servers := fmt.Sprintf(`{%q:"tcp:10.0.0.1:6643"}`, serverA)
	m, err := Read(t.Context(), nil, write(t, "m.db", header(serverA), entry(1, 2), commit(2), vote(2, serverB),
		entry(2, 3),
		record(`{"term":2,"index":4,"servers":`+servers+`}`), record(`{"term":2,"index":5,"election_timer":5000}`), commit(4),
		vote(3, serverA), vote(4, serverA)))
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, []int64{m.First(), m.Last(), m.Committed, m.CurrentTerm, m.LastTerm()}, []int64{2, 5, 4, 4, 2},
		"numbers")
	expect.Equal(t, m.Elections(), 2, "elections")
	expect.Equal(t, m.TimerAt(4), int64(UsualElectionTimer), "timer before")
	expect.Equal(t, m.TimerAt(5), int64(5000), "timer")
	before, _ := m.ServersAt(3)
	after, since := m.ServersAt(4)
	expect.Equal(t, []int{len(before), len(after), int(since)}, []int{2, 1, 4}, "servers")
	expect.Equal(t, m.LastTime(5), time.UnixMilli(1700000000003).UTC(), "time")
	if !m.Belongs() || !m.Listed() || m.Vote != serverA {
		t.Errorf("%+v", m)
	}
}

// TestDamageEndsALog damages a file in the ways of a full disk and of a broken one.
func TestDamageEndsALog(t *testing.T) {
	whole := strings.Join([]string{header(serverA), entry(1, 2), entry(1, 3), entry(1, 4)}, "")
	at := strings.Index(whole, entry(1, 3))
	for name, c := range map[string]struct {
		text    string
		last    int64
		ignored int
	}{
		"cut in a record":      {whole[:len(whole)-20], 3, 0},
		"cut in a header line": {whole + "OVSDB CLUS", 4, 0},
		"zeros in the middle":  {whole[:at+60] + strings.Repeat("\x00", 20) + whole[at+80:], 2, 1},
		"rewritten in place":   {strings.Replace(whole, `"c":"x"`, `"c":"z"`, 1), 4, 0},
	} {
		m, err := Read(t.Context(), nil, write(t, "m.db", c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Last() != c.last || m.Ignored != c.ignored || (m.Damage == "") != (name == "rewritten in place") {
			t.Errorf("%s: last %d, damage %q, ignored %d", name, m.Last(), m.Damage, m.Ignored)
		}
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"standalone": {strings.ReplaceAll(record(`{"name":"T","version":"1.0.0","tables":{}}`), "CLUSTER", "JSON"),
			file.ErrNotClustered},
		"empty": {"", file.ErrEmpty}, "text": {"something else\n", file.ErrNotDatabase},
		"a broken header": {header(serverA)[:200], file.ErrSchema},
	} {
		if _, err := Read(t.Context(), nil, write(t, "m.db", c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargeMemberTakesLittleMemory reads a file whose snapshot and one entry are large.
func TestLargeMemberTakesLittleMemory(t *testing.T) {
	big := strings.Repeat("x", 40<<20)
	path := write(t, "m.db", strings.Replace(record(strings.Replace(strings.SplitN(header(serverA), "\n", 2)[1], `,{}]}`,
		`,{"t":{"00000000-0000-4000-8000-000000000000":{"c":"`+big+`"}}}]}`, 1)), "", "", 1),
		record(fmt.Sprintf(`{"term":1,"index":2,"eid":"`+eid+
			`","data":[null,{"t":{"00000000-0000-4000-8000-000000000001":{"c":"%s"}}}]}`, 2, big)), entry(1, 3))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, err := Read(t.Context(), nil, path)
	if err != nil || m.Last() != 3 || m.At(2).ID == (file.EntryID{}) || m.Damage != "" {
		t.Fatalf("%v %+v", err, m)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 30<<20 {
		t.Errorf("it took %d MiB", used>>20)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(header(serverA)+entry(1, 2)+commit(2)+vote(2, serverB)+lead(2, serverB)+entry(2, 2), header(serverB)+entry(1, 2))
	f.Fuzz(func(t *testing.T, a, b string) {
		var members []*Member
		for _, text := range []string{a, b} {
			if m, err := Read(t.Context(), nil, write(t, "m.db", text)); err == nil {
				members = append(members, m)
				m.Elections()
				m.ServersAt(m.Last())
				m.LastTime(m.Committed)
			}
		}
		if _, err := Contradictions(t.Context(), members); err != nil {
			t.Error(err)
		}
	})
}

func TestParseStatus(t *testing.T) {
	text := "4e01\nName: OVN_Southbound\nCluster ID: 2b98 (2b983e98-0e7d-46a2-a1ca-5366572db3ca)\nServer ID: 4e01 (4e013555-051b-4602-b368-81fb3deb479a)\n" +
		"Address: ssl:[10.0.0.1]:6644\nStatus: cluster member\nRole: leader\nTerm: 7\nLeader: self\nVote: self\n\nElection timer: 5000 (changing to 10000)\nLog: [2, 306]\n" +
		"Entries not yet committed: 0\nConnections: ->b3f5 (->11aa) <-b3f5\nDisconnections: 2\nServers:\n    4e01 (4e01 at ssl:[10.0.0.1]:6644) (self) next_index=3 match_index=305\n" +
		"    b3f5 (b3f5 at ssl:[10.0.0.2]:6644) next_index=306 match_index=305 last msg 39 ms ago\n    11aa (11aa at ssl:[10.0.0.3]:6644) next_index=9 match_index=8\n"
	for _, ending := range []string{"\n", "\r\n"} {
		s, ok := ParseStatus(strings.ReplaceAll(text, "\n", ending))
		if !ok {
			t.Fatal("not read")
		}
		want := []Peer{{Nickname: "4e01", Short: "4e01", Address: "ssl:[10.0.0.1]:6644", Self: true, Silent: -1, Match: 305},
			{Nickname: "b3f5", Short: "b3f5", Address: "ssl:[10.0.0.2]:6644", Silent: 39, Match: 305, Connected: true},
			{Nickname: "11aa", Short: "11aa", Address: "ssl:[10.0.0.3]:6644", Silent: -1, Match: 8}}
		expect.Equal(t, s.Peers, want, "peers")
		expect.Equal(t, []int64{s.Term, s.ElectionTimer, s.First, s.Last, s.Uncommitted, s.Unapplied, s.Disconnections},
			[]int64{7, 5000, 2, 305, 0, -1, 2}, "numbers")
		expect.Equal(t, []string{s.Database, s.Cluster[:4], s.Server[:4], s.Address, s.Role, s.Apart()},
			[]string{"OVN_Southbound", "2b98", "4e01", "ssl:[10.0.0.1]:6644", "leader", ""}, "texts")
	}
	for i := range text {
		ParseStatus(text[:i]) // the text may end anywhere
	}
	if _, ok := ParseStatus("Name: x\nCluster ID: y\n"); ok {
		t.Error("another text is taken for a status")
	}
}

// TestParseStatusOfServersThatJoinOrLeave reads what the leader prints of them, and what a joining server prints.
func TestParseStatusOfServersThatJoinOrLeave(t *testing.T) {
	begin := "Name: OVN_Northbound\nCluster ID: not yet known\nServer ID: 4e01 (4e013555-051b-4602-b368-81fb3deb479a)\n"
	s, ok := ParseStatus(begin + "Status: joining cluster\nRemotes for joining: tcp:10.0.0.2:6643 tcp:[fd00::3]:6643\nConnections:\n")
	if !ok || s.Cluster != "" || !s.Connections {
		t.Errorf("%+v", s)
	}
	expect.Equal(t, s.Remotes, []string{"tcp:10.0.0.2:6643", "tcp:[fd00::3]:6643"}, "remotes")
	s, _ = ParseStatus(begin + "Adding server 0a0b (0a0b at tcp:10.0.0.4:6643) (adding: catchup)\nRemoving server 0c0d (0c0d at tcp:10.0.0.5:6643) (removing)\nConnections: (->0e0f) <-0e0f\n" +
		"Servers:\n    0e0f (0e0f at tcp:10.0.0.6:6643) (adding: committing) (voted for 4e01)\n")
	expect.Equal(t, []string{s.Adding[0].Short, s.Adding[0].Address, s.Adding[0].Phase, s.Removing.Short, s.Removing.Phase,
		s.Peers[0].Phase, s.Peers[0].Vote},
		[]string{"0a0b", "tcp:10.0.0.4:6643", "adding: catchup", "0c0d", "removing", "adding: committing", "4e01"}, "changes")
	if !s.Peers[0].Connected {
		t.Error("a connection from a server is none")
	}
}

// TestSplit finds outputs among other text: quoted in a list, without the first line, and with doubled ends of lines.
func TestSplit(t *testing.T) {
	one := "4e01\nName: A\nCluster ID: x\nTerm: 1\n"
	two := "Name: B\nCluster ID: y\nTerm: 2\n"
	for text, want := range map[string][]Printed{
		"":        nil,
		"Name: A": nil,
		one:       {{1, one}},
		"see:\n\n    4e01\n    Name: A\n    Cluster ID: x\n    Term: 1\n": {{3, one}},
		"$ ovs-appctl cluster/status B\n" + two:                           {{2, two}},
		one + "\n" + one:                                                  {{1, one}, {6, one}},
		one + two: {{1, "4e01\nName: A\nCluster ID: x\nTerm: 1\n"},
			{5, two}},
		"4e01\r\n\r\nName: A\r\n\r\nCluster ID: x\r\n\r\nTerm: 1\r\n": {{1, one}},
	} {
		expect.Equal(t, Split(text), want, strings.ReplaceAll(text, "\n", "|"))
	}
}

// TestAnyDamageIsRead cuts a file at each byte, and changes each byte.
func TestAnyDamageIsRead(t *testing.T) {
	text := header(serverA) + entry(1, 2) + commit(2) + vote(2, serverB) + lead(2, serverB) + entry(2, 3)
	for i := range text {
		for _, damaged := range []string{text[:i], text[:i] + "\x00" + text[i+1:]} {
			m, err := Read(t.Context(), nil, write(t, "m.db", damaged))
			if err == nil && (m.Last() > 3 || m.Server == "") {
				t.Errorf("byte %d: %+v", i, m)
			}
		}
	}
}

// FuzzSplit checks that outputs are found in their order, and that no more text is in them than was given.
func FuzzSplit(f *testing.F) {
	f.Add("4e01\nName: A\nCluster ID: x\nServer ID: 4e01 (4e013555-051b-4602-b368-81fb3deb479a)\nConnections: (->1) <-2\nServers:\n 2 (2222 at tcp:1) (voted for 2) last msg 3 ms ago\n")
	f.Add("Name: A\r\n\r\nCluster ID: x\r\nAdding server 2 (2222 at tcp:1) (adding: catchup)\nName: B\nCluster ID: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		total, line := 0, 0
		for _, printed := range Split(text) {
			if printed.Line <= line {
				t.Errorf("line %d follows line %d", printed.Line, line)
			}
			line = printed.Line
			total += len(printed.Text)
			if status, ok := ParseStatus(printed.Text); ok && len(status.Peers) > maxPeers {
				t.Errorf("%d servers", len(status.Peers))
			}
		}
		if total > len(text)+len("\n") {
			t.Errorf("%d bytes in outputs of a text of %d", total, len(text))
		}
	})
}
