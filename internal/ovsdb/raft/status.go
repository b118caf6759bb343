package raft

import (
	"regexp"
	"strconv"
	"strings"
)

// Status is what a server of a cluster says of itself (cluster/status, ovsdb-server(1)).
type Status struct {
	Database string // "OVN_Northbound"
	Cluster  string // its UUID, "" if the server does not know it
	Server   string // the UUID that its database file has too
	Address  string // for the other servers
	Status   string // "cluster member", "disconnected from the cluster (election timeout)", "failed"
	Role     string // "leader", "follower", "candidate"
	Term     int64
	Leader   string // the beginning of the leader's UUID, or its nickname; "self" or "unknown"
	// ElectionTimer is in milliseconds.
	ElectionTimer int64
	Last          int64 // index of the last entry in the server's memory, 0 if it is not printed
	Peers         []Peer
}

// Peer is a server in the list that a server prints of its cluster.
type Peer struct {
	Nickname string
	Short    string // the beginning of its UUID
	Address  string
	Self     bool
	// Silent is the time since the last message from it, in milliseconds; -1 if none is printed.
	Silent int64
	// Connected reports that the server has a connection to it.
	Connected bool
}

var (
	// printedStatus matches the beginning of what cluster/status prints, with the end of a line that a
	// terminal of `oc rsh` may add.
	printedStatus = regexp.MustCompile(`^\S+\r?\nName: \S+\r?\nCluster ID: `)
	longID        = regexp.MustCompile(`\(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)`)
	printedPeer   = regexp.MustCompile(`^(\S+) \(([0-9a-f]{4}) at ([^)]+)\)(.*)$`)
	lastMessage   = regexp.MustCompile(`last msg ([0-9]+) ms ago`)
)

// ParseStatus reads what cluster/status printed; ok reports whether the text is that. The text may
// end anywhere.
func ParseStatus(text string) (status Status, ok bool) {
	if !printedStatus.MatchString(text) {
		return Status{}, false
	}
	connected := map[string]bool{}
	servers := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if servers {
			status.addPeer(line, connected)
			continue
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Name":
			status.Database = value
		case "Cluster ID":
			status.Cluster = uuidIn(value)
		case "Server ID": // a1b2 (a1b2c3d4-...)
			status.Server = uuidIn(value)
		case "Address":
			status.Address = value
		case "Status":
			status.Status = value
		case "Role":
			status.Role = value
		case "Term":
			status.Term, _ = strconv.ParseInt(value, 10, 64) // 0 for another text
		case "Leader":
			status.Leader = value
		case "Election timer":
			number, _, _ := strings.Cut(value, " ")
			status.ElectionTimer, _ = strconv.ParseInt(number, 10, 64)
		case "Log": // [2, 306]: the first index, and that after the last
			_, end, _ := strings.Cut(strings.TrimSuffix(value, "]"), ", ")
			if next, err := strconv.ParseInt(end, 10, 64); err == nil {
				status.Last = next - 1
			}
		case "Connections":
			for word := range strings.FieldsSeq(value) {
				if nickname, out := strings.CutPrefix(word, "->"); out {
					connected[nickname] = true
				}
			}
		case "Servers:":
			servers = true
		}
	}
	return status, status.Server != ""
}

func uuidIn(text string) string {
	if match := longID.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

func (s *Status) addPeer(line string, connected map[string]bool) {
	match := printedPeer.FindStringSubmatch(line)
	if match == nil {
		return
	}
	peer := Peer{Nickname: match[1], Short: match[2], Address: match[3], Self: strings.Contains(match[4], "(self)"), Silent: -1, Connected: connected[match[1]]}
	if silent := lastMessage.FindStringSubmatch(match[4]); silent != nil {
		peer.Silent, _ = strconv.ParseInt(silent[1], 10, 64) // digits
	}
	s.Peers = append(s.Peers, peer)
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
