package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/answer/cluster"
	"ovs-offline/test/check/expect"
)

// status returns what cluster/status prints of a server of a cluster of three, in the words of ovsdb-server.
func status(id, state, rest string) string {
	return fmt.Sprintf("%[1]s\nName: OVN_Southbound\nCluster ID: a309 (a3090f2b-0246-4daa-a14e-40e369dd955e)\nServer ID: %[1]s (%[1]sa898-f5f1-4f4a-b049-f1926274d4f3)\nAddress: ssl:10.0.0.%[2]c:6644\nStatus: %[3]s\n%[4]s",
		id, id[3], state, rest)
}

const (
	memberState = "cluster member"
	apartState  = "disconnected from the cluster (election timeout)"
	listed      = "Servers:\n    0001 (0001 at ssl:10.0.0.1:6644)\n    0002 (0002 at ssl:10.0.0.2:6644)\n    0003 (0003 at ssl:10.0.0.3:6644)\n"
	leads       = "Role: leader\nTerm: 7\nLeader: self\nVote: self\n\nElection timer: 1000\nLog: [2, 5000]\nEntries not yet committed: 0\nEntries not yet applied: 0\n"
	follows     = "Role: follower\nTerm: 7\nLeader: 0001\nVote: 0001\n\nElection timer: 1000\nLog: [2, 5000]\nEntries not yet committed: 0\nEntries not yet applied: 0\n"
	asks        = "Role: candidate\nTerm: 9\nLeader: unknown\nVote: self\n\nElection timer: 1000\nLog: [2, 5000]\nEntries not yet committed: 0\nEntries not yet applied: 0\n"
)

// listedBy is the list of servers that a leader prints, with what it prints of the second and the third one.
func listedBy(second, third string) string {
	return "Servers:\n    0001 (0001 at ssl:10.0.0.1:6644) (self) next_index=1 match_index=4999\n    0002 (0002 at ssl:10.0.0.2:6644)" + second + "\n    0003 (0003 at ssl:10.0.0.3:6644)" + third + "\n"
}

// TestStatusesAlone has texts that plainly show what is wrong.
func TestStatusesAlone(t *testing.T) {
	const well, both = " next_index=5000 match_index=4999 last msg 12 ms ago", "Connections: ->0002 <-0002 ->0003 <-0003\n"
	for name, c := range map[string]struct {
		statuses []string
		want     string // the kinds of problems
		says     string
	}{
		"a leader that hears all": {[]string{status("0001", memberState, leads+both+listedBy(well, well))},
			"", ""},
		"connections from servers count as well": {[]string{status("0001", memberState,
			leads+"Connections: (->0002) <-0002 <-0003 (->0003)\n"+listedBy(well, well))}, "", ""},
		"an old release prints no times": {[]string{status("0001", memberState,
			leads+"Connections: ->0002 (->0003)\n"+
				listedBy(" next_index=5000 match_index=4999", " next_index=5000 match_index=0"))}, "dead-server",
			"no connection is up"},
		"a silent server": {[]string{status("0001", memberState,
			leads+both+listedBy(well, " next_index=9 match_index=8 last msg 90000 ms ago"))}, "dead-server",
			"it hangs, or its disk is full"},
		"a server that lags": {[]string{status("0001", memberState,
			leads+both+listedBy(well, " next_index=9 match_index=8 last msg 9 ms ago"))}, "behind",
			"lacks the last 4991 entries"},
		"a leader that reaches nobody": {[]string{status("0001", memberState,
			leads+"Connections: (->0002) (->0003)\n"+
				listedBy(" next_index=5 match_index=4 last msg 500 ms ago", " next_index=5 match_index=4"))}, "no-quorum",
			"its leader commits nothing"},
		"a follower": {[]string{status("0002", memberState,
			follows+"Connections: ->0001 <-0001 ->0003\n"+listed)}, "", ""},
		"a follower whose leader is away": {[]string{status("0002", memberState,
			follows+"Connections: (->0001) ->0003\n"+listed)}, "dead-server", "still takes it for the leader of term 7"},
		"a candidate that reaches one of two": {[]string{status("0002", apartState,
			asks+"Connections: (->0001) ->0003\n"+listed)}, "no-leader", "no connection with 0001"},
		"a candidate that reaches nobody": {[]string{status("0002", apartState,
			asks+"Connections: (->0001) (->0003)\n"+listed)}, "no-quorum",
			"Whether the others have a leader among themselves is not known here"},
		"three candidates that reach nobody": {[]string{status("0001", apartState,
			asks+"Connections: (->0002) (->0003)\n"+listed),
			status("0002", apartState, asks+"Connections: (->0001) (->0003)\n"+listed),
			status("0003", apartState, asks+"Connections: (->0001) (->0002)\n"+listed)}, "no-quorum",
			"no change is possible, no leader is elected"},
		"the term rises": {[]string{status("0002", apartState,
			asks+"Connections: (->0001) (->0003)\n"+listed),
			status("0002", apartState, strings.Replace(asks, "Term: 9", "Term: 31", 1)+"Connections: (->0001) (->0003)\n"+
				listed)}, "no-quorum", "its term rose from 9 to 31"},
		"one is apart": {[]string{status("0001", memberState, leads+both+listedBy(well, well)),
			status("0003", apartState, asks+"Connections: (->0001) (->0002)\n"+listed)}, "apart",
			"its higher term costs the cluster one election"},
		"followers that do not reach each other": {[]string{status("0001", memberState, leads+both+listedBy(well, well)),
			status("0002", memberState, follows+"Connections: ->0001 (->0003)\n"+listed)}, "not-connected",
			"no connection with 0003"},
		"a leader of an earlier moment": {[]string{status("0001", memberState, leads+both+listedBy(well, well)),
			status("0002", memberState, strings.Replace(leads, "Term: 7", "Term: 8", 1)+"Connections: ->0001 ->0003\n"+listed)},
			"", ""},
		"it cannot write": {[]string{status("0002", "failed", follows+both+listed)}, "failed",
			"cannot write its file"},
		"a join that gets data": {[]string{status("0001", memberState,
			"Adding server 0004 (0004 at ssl:10.0.0.4:6644) (adding: catchup)\n"+leads+"Connections: ->0002 ->0003 <-0004\n"+
				listedBy(well, well))}, "", "the leader sends it the data now"},
		"a join that lost the leader": {[]string{status("0001", memberState,
			"Adding server 0004 (0004 at ssl:10.0.0.4:6644) (adding: catchup)\n"+leads+both+listedBy(well, well))},
			"stuck-joining", "the leader has lost the connection with it"},
		"a join whose answer was refused": {[]string{status("0001", memberState,
			"Adding server 0004 (0004 at ssl:10.0.0.4:6644) (adding: catchup)\n"+leads+"Connections: ->0002 ->0003 <-0004\n"+
				listedBy(well, well)), status("0004", "joining cluster",
			"Remotes for joining: ssl:10.0.0.1:6644 ssl:10.0.0.2:6644\nRole: follower\nTerm: 3\nLeader: 0001\nVote: unknown\n\nElection timer: 1000\nLog: [2, 10]\nEntries not yet committed: 0\nEntries not yet applied: 9\nConnections: ->0001 ->0002 ->0003\n"+listed)},
			"stuck-joining", "began to add it in term 3, lost the leadership meanwhile, and waits in term 7 for an answer that it has refused"},
		"a join under a new id": {[]string{status("0001", memberState, leads+both+listedBy(well, well)),
			strings.Replace(status("0103", "joining cluster",
				"Remotes for joining: ssl:10.0.0.1:6644\nRole: follower\nTerm: 0\nLeader: unknown\nConnections: (->0000)\n"),
				"a309 (a3090f2b-0246-4daa-a14e-40e369dd955e)", "not yet known", 1)}, "stuck-joining",
			"still counted under another id, 0003"},
		"a server is removed": {[]string{status("0001", memberState,
			"Removing server 0004 (0004 at ssl:10.0.0.4:6644) (removing)\n"+leads+both+listedBy(well, well))}, "",
			"is being removed"},
		"a server that was removed": {[]string{status("0001", memberState, leads+both+listedBy(well, well)),
			status("0004", apartState, asks+"Connections: (->0001)\nServers:\n    0004 (0004 at ssl:10.0.0.4:6644) (self)\n    0001 (0001 at ssl:10.0.0.1:6644)\n")}, "removed", "was removed from the cluster"},
		"two ids at one address, and neither known": {[]string{status("0002", memberState,
			follows+"Connections: ->0001 ->0003\n"+listed+"    0103 (0103 at ssl:10.0.0.3:6644)\n")}, "same-address",
			"are both counted, with one address"},
		"two ids, and no leader that removes one": {[]string{status("0003", apartState,
			asks+"Connections: (->0001) (->0002) (->0103)\n"+listed+"    0103 (0103 at ssl:10.0.0.3:6644)\n")},
			"no-quorum same-address", "once the cluster has a leader, remove the old id"},
		"entries wait": {[]string{status("0001", memberState,
			strings.Replace(leads, "committed: 0", "committed: 8", 1)+both+listedBy(well, well))}, "", "the last 8 entries"},
		"the database is slow": {[]string{status("0002", memberState,
			strings.Replace(follows, "applied: 0", "applied: 70", 1)+"Connections: ->0001 ->0003\n"+listed)}, "",
			"has committed 70 entries"},
		"other election timers": {[]string{status("0001", memberState, leads+both+listedBy(well, well)),
			status("0002", memberState, strings.Replace(follows, "timer: 1000", "timer: 9000", 1)+"Connections: ->0001 ->0003\n"+
				listed)}, "election-timers", "9s: 0002"},
		"the text is cut before the connections": {[]string{status("0002", memberState,
			"Role: candidate\nTerm: 9\nLeader: unknown\n")}, "", ""},
		"the list of connections is missing": {[]string{status("0002", apartState, asks+listed)}, "no-leader",
			"an election is going on"},
	} {
		t.Run(name, func(t *testing.T) {
			var members []cluster.Member
			for _, text := range c.statuses {
				members = append(members, cluster.Member{Status: text})
			}
			report, err := cluster.Examine(t.Context(), members)
			if err != nil || len(report.Clusters) != 1 {
				t.Fatalf("%v: %s", err, printed(report))
			}
			found := report.Clusters[0]
			var kinds []string
			for _, kind := range faults(found) {
				kinds = append(kinds, string(kind))
			}
			expect.Equal(t, strings.Join(kinds, " "), c.want, "kinds")
			if text := printed(report); !strings.Contains(text, c.says) {
				t.Errorf("no %q in %s", c.says, text)
			}
			if len(found.Unknown) == 0 {
				t.Error("nothing is said to be unknown")
			}
		})
	}
}

// TestTwoClustersByStatuses has servers of two clusters of one database at the same hosts.
func TestTwoClustersByStatuses(t *testing.T) {
	other := strings.NewReplacer("a309", "b309", "0001",
		"0101").Replace(status("0001", memberState,
		leads+"Connections:\nServers:\n    0001 (0001 at ssl:10.0.0.1:6644) (self)\n"))
	report, err := cluster.Examine(t.Context(),
		[]cluster.Member{{Status: status("0002", memberState, follows+"Connections: ->0001 ->0003\n"+listed)},
			{Status: other}})
	if err != nil || len(report.Clusters) != 2 || problem(report, cluster.TwoClusters) == nil ||
		problem(report, cluster.TwoClusters).Severity != cluster.Error {
		t.Errorf("%v %s", err, printed(report))
	}
}

// TestTooManyServers has the statuses of more servers than a cluster can have, and of one server at many moments.
func TestTooManyServers(t *testing.T) {
	var many, moments []cluster.Member
	for i := range 3000 {
		text := status("0002", memberState, follows+"Connections: ->0001 ->0003\n"+listed)
		many = append(many, cluster.Member{Status: strings.Replace(text, "(0002a898-", fmt.Sprintf("(%08x-", i), 1)})
		moments = append(moments, cluster.Member{Status: strings.Replace(text, "Term: 7", fmt.Sprintf("Term: %d", i), 1)})
	}
	report, err := cluster.Examine(t.Context(), many)
	if err != nil || len(report.Unjudged) != 1 || !strings.Contains(report.Unjudged[0].Reason, "too many servers") {
		t.Errorf("%v %+v", err, report.Unjudged)
	}
	report, err = cluster.Examine(t.Context(), moments)
	if err != nil || len(report.Unjudged) > 0 || report.Clusters[0].Terms[0].Last != 2999 {
		t.Errorf("%v %s", err, printed(report))
	}
}

// TestLogAlone has logs that plainly show what is wrong.
func TestLogAlone(t *testing.T) {
	at := func(second int, module, text string) string {
		return fmt.Sprintf("2026-11-27T10:%02d:%02d.000Z|%05d|%s|INFO|%s\n", second/60, second%60, second, module, text)
	}
	begin := at(0, "raft", "local server ID is bc77") + at(1, "raft", "server 7e27 is leader for term 4")
	for name, c := range map[string]struct{ text, want, says string }{
		"a leader": {begin, "", ""},
		"an election that was won": {begin + at(2, "raft", "term 5: 1649 ms timeout expired, starting election") + at(3,
			"raft", "term 6: 1649 ms timeout expired, starting election") + at(4, "raft",
			"term 6: elected leader by 2+ of 3 servers"), "", `"leader": "bc77"`},
		"elections in vain": {begin + at(2, "raft", "term 5: 1649 ms timeout expired, starting election") + at(3,
			"raft", "term 6: starting election (pre-vote)"), "no-leader", "up to term 6"},
		"lines about elections alone": {at(2, "raft", "term 5: 1649 ms timeout expired, starting election") + at(3, "raft",
			"term 6: 1649 ms timeout expired, starting election"), "", "whether a leader was elected: the log has 2 elections"},
		"a server that refuses": {begin + at(2, "reconnect",
			"ssl:10.0.0.86:6644: connection attempt failed (Connection refused)") + at(4, "reconnect",
			"ssl:10.0.0.86:6644: connection attempt timed out"), "dead-server", "ssl:10.0.0.86:6644 does not answer bc77"},
		"a server that came back": {begin + at(2, "reconnect",
			"ssl:10.0.0.86:6644: connection attempt failed (Connection refused)") + at(4, "reconnect",
			"ssl:10.0.0.86:6644: connection attempt timed out") + at(5, "reconnect", "ssl:10.0.0.86:6644: connected"), "", ""},
		"another id": {begin + at(2, "raft",
			"ssl:10.0.0.86:6644: ignoring message with unexpected server ID 1234 (expected 7e27)"), "same-address",
			"expected 7e27"},
		"a join that begins again": {begin + strings.Repeat(at(2, "raft",
			"starting to add server 0004 (0004 at ssl:10.0.0.4:6644) to cluster a309"), 3), "stuck-joining",
			"the leader began to add it 3 times"},
		"a join": {begin + at(2, "raft",
			"starting to add server 0004 (0004 at ssl:10.0.0.4:6644) to cluster a309") + at(3, "raft",
			"adding 0004 (0004 at ssl:10.0.0.4:6644) to cluster a309 succeeded (completed)"), "", ""},
		"dropped lines": {begin + at(2, "raft",
			"Dropped 12 log messages in last 60 seconds (most recently, 5 seconds ago) due to excessive rate"), "",
			"what 12 lines of the raft module said: vlog dropped them"},
		"leaders that change": {begin + strings.Repeat(at(9, "raft", "server b550 is leader for term 9"), 10),
			"bouncing", "10 times"},
		"another client cannot connect": {begin + at(2, "reconnect",
			"tcp:10.0.0.9:43212: connection dropped (Connection reset by peer)"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := inLog(t, c.text)
			var kinds []string
			for _, kind := range faults(found) {
				kinds = append(kinds, string(kind))
			}
			expect.Equal(t, strings.Join(kinds, " "), c.want, "kinds")
			if text := printed(&cluster.Report{Clusters: []*cluster.Cluster{found}}); !strings.Contains(text, c.says) {
				t.Errorf("no %q in %s", c.says, text)
			}
		})
	}
}
