package raft

import (
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Status is what a server of a cluster says of itself (cluster/status, ovsdb-server(1)). The numbers that a text can
// lack are -1 where it lacks them.
type Status struct {
	Database string   // "OVN_Northbound"
	Cluster  string   // its UUID, "" if the server does not know it
	Server   string   // the UUID that its database file has too
	Address  string   // for the other servers
	Status   string   // "cluster member", "disconnected from the cluster (election timeout)", "failed"
	Remotes  []string // the addresses of servers that a joining server asks
	Role     string   // "leader", "follower", "candidate"
	Term     int64
	Leader   string // the beginning of the leader's UUID, or its nickname; "self" or "unknown"
	Vote     string // in the current term, in the same form
	// ElectionTimer is in milliseconds.
	ElectionTimer int64
	First         int64 // index of the first entry in the server's memory, 0 if it is not printed
	Last          int64 // index of the last entry in the server's memory, 0 if it is not printed
	Uncommitted   int64 // how many entries are not known to be committed
	Unapplied     int64 // how many are not applied to the database
	// Disconnections counts since the server started.
	Disconnections int64
	// Connections reports that the text has the list of connections.
	Connections bool
	// Up is how many of the connections are up.
	Up       int
	Adding   []Peer // servers that the leader is adding
	Removing *Peer  // the server that the leader is removing, nil for none
	Peers    []Peer
}

// Peer is a server in the list that a server prints of its cluster.
type Peer struct {
	Nickname string
	Short    string // the beginning of its UUID
	Address  string
	Self     bool
	Phase    string // "adding: catchup", "" for a server that is neither added nor removed
	Vote     string // the server for which it voted, "" if that is not printed
	// Silent is the time since the last message from it, in milliseconds; -1 if none is printed.
	Silent int64
	// Match is the last entry that the leader knows it to have, -1 if that is not printed.
	Match int64
	// Connected reports that the server has a connection to it or from it: it sends on either.
	Connected bool
}

var (
	// printedStatus matches the beginning of what cluster/status prints, with the end of a line that a
	// terminal of `oc rsh` may add. People leave out the first line.
	printedStatus = lazyregexp.New(`^(?:\S+\r?\n)?Name: \S+\r?\nCluster ID: `)
	longID        = lazyregexp.New(`\(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)`)
	printedPeer   = lazyregexp.New(`^(\S+) \(([0-9a-f]{4}) at ([^)]+)\)(.*)$`)
	lastMessage   = lazyregexp.New(`last msg ([0-9]+) ms ago`)
	votedFor      = lazyregexp.New(`\(voted for ([^ )]+)\)`)
	phaseOf       = lazyregexp.New(`\((adding: [a-z ]+|removing)\)`)
	matchIndex    = lazyregexp.New(`match_index=([0-9]+)`)
)

// maxPeers bounds the servers that are read of a status. Clusters have three or five.
const maxPeers = 100

// Printed is an output of cluster/status in a text.
type Printed struct {
	Line int // of its first line, from 1
	Text string
}

// Split returns the outputs of cluster/status in a text, each without indentation and empty lines. One goes on up to the
// next.
func Split(text string) (found []Printed) {
	var kept strings.Builder
	var before [2]string // the lines before, without empty ones
	open, number, at := false, 0, [2]int{}
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if strings.HasPrefix(line, "Cluster ID: ") && strings.HasPrefix(before[1], "Name: ") {
			begin, first := Beginning(before, ""), at[1]
			if strings.Count(begin, "\n") > 1 {
				first = at[0]
			}
			if open {
				found[len(found)-1].Text = strings.TrimSuffix(kept.String(), begin)
			}
			kept.Reset()
			kept.WriteString(begin)
			open, found = true, append(found, Printed{Line: first})
		}
		if open {
			kept.WriteString(line + "\n")
		}
		before, at = [2]string{before[1], line}, [2]int{at[1], number}
	}
	if open {
		found[len(found)-1].Text = kept.String()
	}
	return found
}

// Beginning returns the beginning of an output of cluster/status up to a line: the line with the name before it, and that with the
// nickname if the line before can be that.
func Beginning(before [2]string, line string) string {
	begin := strings.TrimSpace(before[1]) + "\n" + line
	if nickname := strings.TrimSpace(before[0]); isNickname(nickname) {
		begin = nickname + "\n" + begin
	}
	return begin
}

// isNickname reports whether a line can be the first of cluster/status: the beginning of a UUID, or the name of a socket.
func isNickname(line string) bool {
	return line != "" && len(line) <= 64 && !strings.ContainsAny(line, " \t:`$#>~")
}

// ParseStatus reads what cluster/status printed; ok reports whether the text is that. The text may
// end anywhere.
func ParseStatus(text string) (status Status, ok bool) {
	if !printedStatus.MatchString(text) {
		return Status{}, false
	}
	status = Status{Uncommitted: -1, Unapplied: -1, Disconnections: -1}
	connected := map[string]bool{}
	servers := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case servers:
			status.addPeer(line, connected)
		case name == "Servers:":
			servers = true
		case name == "Connections", name == "Connections:":
			status.Connections = true
			status.Up = addConnections(value, connected)
		default:
			status.add(name, value)
		}
	}
	for i := range status.Adding {
		status.Adding[i].Connected = connected[status.Adding[i].Nickname]
	}
	return status, status.Server != ""
}

// add adds a line of the form "name: value".
func (s *Status) add(name, value string) {
	switch name {
	case "Name":
		s.Database = value
	case "Cluster ID":
		s.Cluster = uuidIn(value)
	case "Server ID": // a1b2 (a1b2c3d4-...)
		s.Server = uuidIn(value)
	case "Address":
		s.Address = value
	case "Status":
		s.Status = value
	case "Remotes for joining":
		s.Remotes = strings.Fields(value)
	case "Role":
		s.Role = value
	case "Term":
		s.Term = number(value, 0)
	case "Leader":
		s.Leader = value
	case "Vote":
		s.Vote = value
	case "Election timer":
		timer, _, _ := strings.Cut(value, " ")
		s.ElectionTimer = number(timer, 0)
	case "Log": // [2, 306]: the first index, and that after the last
		first, next, _ := strings.Cut(strings.Trim(value, "[]"), ", ")
		s.First, s.Last = number(first, 0), max(number(next, 0)-1, 0)
	case "Entries not yet committed":
		s.Uncommitted = number(value, -1)
	case "Entries not yet applied":
		s.Unapplied = number(value, -1)
	case "Disconnections":
		s.Disconnections = number(value, -1)
	default:
		s.addChange(name + ": " + value)
	}
}

// addChange adds a line of the leader about a server that joins or leaves.
func (s *Status) addChange(line string) {
	if text, adding := strings.CutPrefix(line, "Adding server "); adding {
		if peer, ok := parsePeer(text); ok && len(s.Adding) < maxPeers {
			s.Adding = append(s.Adding, peer)
		}
	} else if text, removing := strings.CutPrefix(line, "Removing server "); removing {
		if peer, ok := parsePeer(text); ok {
			s.Removing = &peer
		}
	}
}

// addConnections reads a list of connections: ->7e27 is one to a server, <-7e27 one from it, and one in parentheses is
// not connected. It returns how many are connected.
func addConnections(value string, connected map[string]bool) (up int) {
	for word := range strings.FieldsSeq(value) {
		if nickname := strings.TrimPrefix(strings.TrimPrefix(word, "->"), "<-"); nickname != word {
			connected[nickname] = true
			up++
		}
	}
	return up
}

// number returns the number in a text, or another one where there is none.
func number(text string, or int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return n
	}
	return or
}

func uuidIn(text string) string {
	if match := longID.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

func (s *Status) addPeer(line string, connected map[string]bool) {
	if peer, ok := parsePeer(line); ok && len(s.Peers) < maxPeers {
		peer.Connected = connected[peer.Nickname]
		s.Peers = append(s.Peers, peer)
	}
}

// parsePeer reads a server: "7e27 (7e27 at ssl:10.0.0.86:6644) (voted for bc77) last msg 12 ms ago".
func parsePeer(line string) (peer Peer, ok bool) {
	match := printedPeer.FindStringSubmatch(line)
	if match == nil {
		return peer, false
	}
	rest := match[4]
	first := func(pattern *lazyregexp.Regexp) string {
		if found := pattern.FindStringSubmatch(rest); found != nil {
			return found[1]
		}
		return ""
	}
	return Peer{Nickname: match[1], Short: match[2], Address: match[3], Self: strings.Contains(rest, "(self)"), Phase: first(phaseOf),
		Vote: first(votedFor), Silent: number(first(lastMessage), -1), Match: number(first(matchIndex), -1)}, true
}

// Apart returns how the server was apart from its cluster, "" if it was not. Its database may then
// lack what the other members have.
func (s *Status) Apart() string {
	switch {
	case s.Status != "" && s.Status != "cluster member":
		return "its server's status was " + s.Status
	case s.Leader == "unknown":
		return "its server knew no leader of the cluster"
	}
	return ""
}
