package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/workdir"
)

// Log is a log of an ovsdb-server.
type Log struct {
	Name     string // for messages
	Server   string // what tells its server from others: the host and the program
	Database string // "" if its name does not tell
	Open     func(ctx context.Context) (*daemonlog.Reader, error)
}

// Logs returns the logs of the ovsdb-servers of OVN databases that workdirs hold.
func Logs(dirs ...*workdir.Dir) (all []Log, err error) {
	for _, wd := range dirs {
		logs, err := wd.HostLogs()
		if err != nil {
			return nil, err
		}
		for _, log := range logs {
			if !strings.HasPrefix(log.Program, "ovsdb-server") {
				continue
			}
			found := Log{Name: wd.Relative(log.Path), Server: wd.Host() + " " + log.Program, Open: func(ctx context.Context) (*daemonlog.Reader, error) {
				return daemonlog.Open(ctx, log.Path, log.Program, daemonlog.Options{})
			}}
			if name, ok := workdir.DecodeName(filepath.Base(log.Path)); ok {
				found.Name = wd.Host() + ": " + name
			}
			switch log.Program {
			case "ovsdb-server-nb":
				found.Database = workdir.NB.Schema()
			case "ovsdb-server-sb":
				found.Database = workdir.SB.Schema()
			}
			all = append(all, found)
		}
	}
	return all, nil
}

// AddLogs adds what logs say of clusters whose files and statuses are not known.
func (r *Report) AddLogs(ctx context.Context, logs []Log) error {
	logs = slices.DeleteFunc(slices.Clone(logs), func(log Log) bool {
		return slices.ContainsFunc(r.Clusters, func(c *Cluster) bool { return log.Database == "" || c.Database == log.Database })
	})
	begins := map[string]time.Time{} // by the name of the log
	for _, log := range logs {
		at, err := beginOf(ctx, log)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.Unjudged = append(r.Unjudged, Unjudged{log.Name, err.Error()})
			continue
		}
		begins[log.Name] = at
	}
	slices.SortStableFunc(logs, func(a, b Log) int { return begins[a.Name].Compare(begins[b.Name]) })
	servers := map[string]*logged{}
	for _, log := range logs {
		if _, readable := begins[log.Name]; !readable {
			continue
		}
		server := servers[log.Server]
		if server == nil {
			server = &logged{database: cmp.Or(log.Database, "a database that the log does not name"), failing: map[string]*attempt{}, added: map[string]*attempt{}}
			servers[log.Server] = server
		}
		server.name = log.Name
		if err := server.read(ctx, log); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(servers)) {
		if server := servers[key]; server.lines > 0 {
			r.Clusters = append(r.Clusters, server.cluster())
		}
	}
	return nil
}

// beginOf returns the time of the first line of a log that has one.
func beginOf(ctx context.Context, log Log) (at time.Time, err error) {
	in, err := log.Open(ctx)
	if err != nil {
		return at, err
	}
	defer in.Close()
	for range 100 {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return at, err
		}
		if !line.At.IsZero() {
			return line.At, nil
		}
	}
	return at, nil
}

// logged is what the log of a server says, up to its end.
type logged struct {
	name, database string
	lines          int    // of the raft module
	server         string // the beginning of its UUID
	last           time.Time

	leader     string // the last one that it names
	term       int64
	ledAt      time.Time
	changes    []time.Time // when leaders were elected, the last ones
	elections  int         // since then
	lastTerm   int64
	firstVain  time.Time
	dropped    int                 // lines of the raft module that vlog dropped
	failing    map[string]*attempt // by the address of another server: since the last connection
	added      map[string]*attempt // by the server that joins: since it last succeeded
	unexpected []string            // lines about another id at an address
	broken     []string            // lines about a server that failed or contradicts others
}

// attempt is what was tried in vain.
type attempt struct {
	count int
	last  string // the last line about it
	at    time.Time
}

// The messages of ovsdb-server (ovsdb/raft.c, lib/reconnect.c).
var (
	loggedSelf      = lazyregexp.New(`^local server ID is ([0-9a-f]{4})`)
	loggedElected   = lazyregexp.New(`^term ([0-9]+): elected leader by `)
	loggedLeader    = lazyregexp.New(`^server (\S+) is leader for term ([0-9]+)`)
	loggedElection  = lazyregexp.New(`^term ([0-9]+): (?:[0-9]+ ms timeout expired, )?starting election`)
	loggedConnected = lazyregexp.New(`^((?:ssl|tcp|unix):\S+): connected$`)
	loggedFailed    = lazyregexp.New(`^((?:ssl|tcp|unix):\S+): connection attempt (?:failed|timed out)`)
	loggedAdding    = lazyregexp.New(`^starting to add server \S+ \(([0-9a-f]{4}) at ([^)]+)\)`)
	loggedAdded     = lazyregexp.New(`^adding \S+ \(([0-9a-f]{4}) at ([^)]+)\) to cluster \S+ (succeeded|failed)`)
	loggedDropped   = lazyregexp.New(`^Dropped ([0-9]+) log messages in last `)
)

const (
	// mostKept bounds the addresses, servers, lines and elections that are kept of a log.
	mostKept = 100
	// vainElections, failedAttempts and vainJoins are how often something is tried in vain until it is a problem. After a few
	// attempts lib/reconnect.c logs no further ones.
	vainElections, failedAttempts, vainJoins = 2, 2, 3
)

// read reads a log, up to its end.
func (l *logged) read(ctx context.Context, log Log) error {
	in, err := log.Open(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !line.At.IsZero() {
			l.last = line.At
		}
		switch text := string(line.Text[:min(len(line.Text), 1000)]); string(line.Module) {
		case "raft":
			l.lines++
			l.addRaft(text, line.At)
		case "reconnect":
			l.addConnection(text, line.At)
		}
	}
}

// addRaft adds a line of the raft module.
func (l *logged) addRaft(text string, at time.Time) {
	number := func(digits string) int64 {
		n, _ := strconv.ParseInt(digits, 10, 64) // 0 for too long a number
		return n
	}
	if m := loggedSelf.FindStringSubmatch(text); m != nil {
		l.server = m[1]
	} else if m := loggedElected.FindStringSubmatch(text); m != nil {
		l.lead(cmp.Or(l.server, "self"), number(m[1]), at)
	} else if m := loggedLeader.FindStringSubmatch(text); m != nil {
		l.lead(m[1], number(m[2]), at)
	} else if m := loggedElection.FindStringSubmatch(text); m != nil {
		if l.elections == 0 {
			l.firstVain = at
		}
		l.elections, l.lastTerm = l.elections+1, number(m[1])
	} else if m := loggedAdding.FindStringSubmatch(text); m != nil {
		try(l.added, m[1]+" at "+m[2], text, at)
	} else if m := loggedAdded.FindStringSubmatch(text); m != nil && m[3] == "succeeded" {
		delete(l.added, m[1]+" at "+m[2])
	} else if m := loggedDropped.FindStringSubmatch(text); m != nil {
		l.dropped += int(number(m[1]))
	} else if strings.Contains(text, "ignoring message with unexpected server ID ") {
		l.unexpected = keep(l.unexpected, text)
	} else if strings.Contains(text, "entering failure mode due to I/O error") || strings.HasPrefix(text, "this server is leader but server ") {
		l.broken = keep(l.broken, text)
	}
}

// lead adds a leader.
func (l *logged) lead(server string, term int64, at time.Time) {
	l.leader, l.term, l.ledAt, l.elections = server, term, at, 0
	l.changes = append(l.changes[max(0, len(l.changes)-mostKept):], at)
}

// addConnection adds a line about a connection that the server opens: other servers of the cluster are all that it connects to.
func (l *logged) addConnection(text string, at time.Time) {
	if m := loggedConnected.FindStringSubmatch(text); m != nil {
		delete(l.failing, m[1])
	} else if m := loggedFailed.FindStringSubmatch(text); m != nil {
		try(l.failing, m[1], text, at)
	}
}

// try counts what was tried in vain.
func try(all map[string]*attempt, key, text string, at time.Time) {
	one := all[key]
	if one == nil {
		if len(all) >= mostKept {
			return
		}
		one = &attempt{}
		all[key] = one
	}
	one.count, one.last, one.at = one.count+1, text, at
}

func keep(lines []string, line string) []string {
	if len(lines) < 3 && !slices.Contains(lines, line) {
		lines = append(lines, line)
	}
	return lines
}

// cluster returns what the log of a server says of its cluster.
func (l *logged) cluster() *Cluster {
	c := &Cluster{Database: l.database, Problems: []*Problem{}, Servers: []*Server{{ID: l.server, Name: l.name, State: Unseen}}, Terms: []Term{}, Leader: l.leader,
		Unknown: []string{"what is so now: the log ends at " + cmp.Or(show.Time(l.last), "a line without a time") + ". What `ovs-appctl cluster/status` prints on each server tells"}}
	if l.leader != "" {
		c.Terms = append(c.Terms, Term{First: l.term, Last: l.term, Leader: l.leader, Begin: l.ledAt})
	}
	if l.elections > 0 && l.lastTerm > l.term {
		c.Terms = append(c.Terms, Term{First: l.term + 1, Last: l.lastTerm, Unknown: true, Begin: l.firstVain})
	}
	if l.dropped > 0 {
		c.Unknown = append(c.Unknown, fmt.Sprintf("what %s of the raft module said: vlog dropped them", phrase.Count(l.dropped, "line")))
	}
	if l.elections > 0 && l.isExcerpt() {
		c.Unknown = append(c.Unknown, fmt.Sprintf("whether a leader was elected: the log has %s, and no line about a leader", phrase.Count(l.elections, "election")))
	}
	for _, p := range []*Problem{l.vain(), l.often(), l.contradicted(), l.failed()} {
		if p != nil {
			c.Problems = append(c.Problems, p)
		}
	}
	c.Problems = append(append(c.Problems, l.unreached()...), l.joining()...)
	slices.SortStableFunc(c.Problems, func(a, b *Problem) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	return c
}

// self names the server whose log it is.
func (l *logged) self() string {
	if l.server == "" {
		return "the server of " + l.name
	}
	return fmt.Sprintf("%s (%s)", l.server, l.name)
}

// evidence returns a line of the log.
func (l *logged) evidence(text string, at time.Time) string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", l.name, show.Time(at), text))
}

// isExcerpt reports whether the log names neither its server nor a leader: lines that name a leader may have been left out.
func (l *logged) isExcerpt() bool { return l.server == "" && l.leader == "" }

// vain finds elections without a leader at the end of the log.
func (l *logged) vain() *Problem {
	if l.elections < vainElections || l.isExcerpt() {
		return nil
	}
	p := &Problem{Kind: NoLeader, Severity: Error, At: l.firstVain, Follows: "no change is possible until a leader is elected",
		What: fmt.Sprintf("%s had no leader at the end of the log: %s asked for votes %s, up to term %d, and names no leader since", l.database, l.self(), phrase.Count(l.elections, "time"), l.lastTerm)}
	p.Evidence = append(p.Evidence, l.evidence(fmt.Sprintf("the first of these elections, the last in term %d", l.lastTerm), l.firstVain))
	if l.leader != "" {
		p.Evidence = append(p.Evidence, l.evidence(fmt.Sprintf("server %s is leader for term %d", l.leader, l.term), l.ledAt))
	}
	p.Repair = []Step{{Action: Look, Text: "start the servers that do not run, and look for what is between those that do; cluster/status of each tells who reaches whom"}}
	return p
}

// often finds leaders that changed too often.
func (l *logged) often() *Problem {
	for i := range l.changes {
		last := i + bouncingTerms - 1
		if last >= len(l.changes) || l.changes[i].IsZero() || l.changes[last].Sub(l.changes[i]) > bouncingTime {
			continue
		}
		return &Problem{Kind: Bouncing, Severity: Warning, At: l.changes[last],
			What:     fmt.Sprintf("%s elected a leader %d times in %v: the election timer is too short for its load, or servers can't reach each other", l.database, bouncingTerms, l.changes[last].Sub(l.changes[i]).Round(time.Second)),
			Evidence: []string{l.evidence("the first of these elections", l.changes[i]), l.evidence("the last", l.changes[last])},
			Follows:  "each election stops all changes for as long as it takes, and clients that want the leader connect again"}
	}
	return nil
}

// contradicted finds another id at the address of a server: that one joined again with a new file.
func (l *logged) contradicted() *Problem {
	if len(l.unexpected) == 0 {
		return nil
	}
	p := &Problem{Kind: SameAddress, Severity: Error, What: "a server answers under another id than the cluster counts at its address: it joined again with a new file, and the old id was not removed",
		Follows: "the old id counts for the majority, as a server that does not run"}
	for _, line := range l.unexpected {
		p.Evidence = append(p.Evidence, l.name+": "+line)
	}
	p.Repair = []Step{{Action: Look, Text: "cluster/status of the leader lists both ids: remove the old one with cluster/kick"}}
	return p
}

// failed finds a server that could not write, or two leaders.
func (l *logged) failed() *Problem {
	if len(l.broken) == 0 {
		return nil
	}
	p := &Problem{Kind: Failed, Severity: Error, What: l.self() + " failed", Follows: "it confirms nothing to the leader, so it counts as lost for the majority"}
	for _, line := range l.broken {
		p.Evidence = append(p.Evidence, l.name+": "+line)
	}
	return p
}

// unreached finds servers that the server could not connect to, up to the end of the log.
func (l *logged) unreached() (problems []*Problem) {
	for _, address := range slices.Sorted(maps.Keys(l.failing)) {
		if one := l.failing[address]; one.count >= failedAttempts {
			problems = append(problems, &Problem{Kind: Dead, Severity: Warning, At: one.at, Servers: []string{address},
				What:     fmt.Sprintf("%s does not answer %s: %s failed, and none succeeded since", address, l.self(), phrase.Count(one.count, "attempt")),
				Evidence: []string{l.evidence(one.last, one.at)}, Follows: "it counts for the majority while the cluster counts it"})
		}
	}
	return problems
}

// joining finds servers that the leader began to add again and again.
func (l *logged) joining() (problems []*Problem) {
	for _, server := range slices.Sorted(maps.Keys(l.added)) {
		if one := l.added[server]; one.count >= vainJoins {
			problems = append(problems, &Problem{Kind: StuckJoining, Severity: Error, At: one.at, Servers: []string{server[:4]},
				What:     fmt.Sprintf("%s has not joined the cluster: the leader began to add it %s", server, phrase.Count(one.count, "time")),
				Evidence: []string{l.evidence(one.last, one.at)}, Follows: "it serves nothing, and does not count for the majority"})
		}
	}
	return problems
}
