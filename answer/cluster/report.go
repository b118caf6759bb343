// Package cluster examines the files of the members of clustered databases (RAFT): who led, what each
// member has and lacks, what is wrong, and which commands repair it.
package cluster

import (
	"time"

	"ovs-offline/pkg/ovsdb/file"
)

// Member is the file of a cluster's member, what its server printed of itself, or both.
type Member struct {
	Name   string // for messages: the host, the pod, or the path of the file
	Path   string // of the file; "" for none
	Status string // what cluster/status printed; "" if that is not known
	// Taken is when the file was copied, zero if that is not known.
	Taken time.Time
	// Place and Control are the paths of the file and of the control socket on its server. Empty means
	// the paths of the packages of distributions.
	Place, Control string

	open file.Opener // of the file; nil for os.Open
}

// Report is what the members' files say.
type Report struct {
	Clusters []*Cluster `json:"clusters"`
	// Unjudged are the files that say nothing, with the reason.
	Unjudged []Unjudged `json:"unjudged,omitempty"`
	// Standalone are the files of databases that are in no cluster.
	Standalone []string `json:"standalone,omitempty"`
}

// Unjudged is a file that could not be read as that of a member.
type Unjudged struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Cluster is a clustered database.
type Cluster struct {
	Database string    `json:"database"`
	ID       string    `json:"id,omitempty"` // "" if only servers are known that have not joined it
	Servers  []*Server `json:"servers"`
	// Committed has the addresses of the servers as of the last committed configuration, by their
	// UUIDs, and Pending the ones of a later configuration that is not committed; nil if there is none.
	Committed     map[string]string `json:"committed,omitempty"`
	Pending       map[string]string `json:"pending,omitempty"`
	ElectionTimer int64             `json:"election_timer,omitempty"` // in milliseconds
	Terms         []Term            `json:"terms"`                    // the latest ones, the oldest first
	// Leader is the UUID of the leader as of the outputs of cluster/status, where no file tells; "" if they name none.
	Leader string `json:"leader,omitempty"`
	// Unknown is what cannot be judged from what was given.
	Unknown  []string   `json:"unknown,omitempty"`
	Problems []*Problem `json:"problems"`
}

// Server is a server of a cluster, or one that was or wants to be one.
type Server struct {
	ID      string `json:"id"` // its UUID, or the beginning of it that other servers printed
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"` // of its file or host; "" if no file of it was given
	State   State  `json:"state"`
	// The rest is what its file says.
	Term      int64     `json:"term,omitempty"`
	Vote      string    `json:"vote,omitempty"`   // the server that it voted for in that term
	Leader    string    `json:"leader,omitempty"` // the server that it last knew as the leader
	First     int64     `json:"first,omitempty"`  // index of the snapshot
	Last      int64     `json:"last,omitempty"`   // index of the last entry
	Committed int64     `json:"committed,omitempty"`
	Changed   time.Time `json:"changed,omitzero"` // time of the last committed entry that has one
	Schema    string    `json:"schema,omitempty"` // version
	Status    string    `json:"status,omitempty"` // as its server printed it
	Role      string    `json:"role,omitempty"`   // the same
	// Connected has the servers with which it printed a connection, nil if it printed no list.
	Connected []string `json:"connected,omitzero"`
}

// State is the state of a server in its cluster.
type State string

// The states.
const (
	Sound   State = "member"
	Joining State = "joining" // it has not joined
	Left    State = "left"    // it has left, as its own file says
	Removed State = "removed" // the other members do not count it any more
	Refused State = "refused" // ovsdb-server does not start on its file
	Cut     State = "cut off" // the end of its file is missing or can't be read
	Older   State = "copy"    // another file of the same server is newer
	Absent  State = "no file"
	Unseen  State = "no status" // neither its file nor its status was given
	Alone   State = "apart"     // it knows no leader, as its status says
	Broken  State = "failed"    // it cannot write, as its status says
)

// Term is a term, or terms without a leader in a row.
type Term struct {
	First int64 `json:"first"` // the number of the term
	Last  int64 `json:"last"`  // the same for one with a leader
	// Leader is the UUID of the leader, "" if none was elected or it is not known.
	Leader string `json:"leader,omitempty"`
	// Inferred reports that the leader is known from votes: its own file was not given.
	Inferred bool      `json:"inferred,omitempty"`
	Unknown  bool      `json:"unknown,omitempty"` // there was a leader, and no file names it
	Entries  int       `json:"entries"`
	Begin    time.Time `json:"begin,omitzero"` // of the first and the last of them that have a time
	End      time.Time `json:"end,omitzero"`
}

// Severity is how bad a problem is.
type Severity string

// The severities, the worst first. A note needs no repair.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Problem is something that is wrong with a cluster, and its repair.
type Problem struct {
	Kind     Kind      `json:"kind"`
	Severity Severity  `json:"severity"`
	What     string    `json:"what"`
	Evidence []string  `json:"evidence,omitempty"`
	Follows  string    `json:"follows,omitempty"`
	Repair   []Step    `json:"repair,omitempty"` // in order
	Servers  []string  `json:"servers,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Kind names what is wrong.
type Kind string

// The kinds.
const (
	NoQuorum       Kind = "no-quorum"
	NoLeader       Kind = "no-leader"
	Apart          Kind = "apart"
	Dead           Kind = "dead-server"
	SameAddress    Kind = "same-address"
	SameServer     Kind = "same-server"
	StuckJoining   Kind = "stuck-joining"
	HasLeft        Kind = "left"
	WasRemoved     Kind = "removed"
	RefusedLog     Kind = "refused-log"
	LostRecords    Kind = "lost-records"
	CutOff         Kind = "cut-off"
	Failed         Kind = "failed"
	Contradicting  Kind = "contradiction"
	TwoClusters    Kind = "two-clusters"
	Behind         Kind = "behind"
	NoFile         Kind = "no-file"
	PendingServers Kind = "pending-servers"
	NotConnected   Kind = "not-connected"
	Uncommitted    Kind = "uncommitted"
	Bouncing       Kind = "bouncing"
	Timers         Kind = "election-timers"
	Schemas        Kind = "schemas"
)

// Action is what a step of a repair does.
type Action string

// The actions.
const (
	Run   Action = "run"   // run the command
	Stop  Action = "stop"  // end the ovsdb-server
	Start Action = "start" // start the ovsdb-server, or connect it again
	Wait  Action = "wait"  // run the command until it prints the text
	Look  Action = "look"  // what a person decides or looks for
)

// Step is a step of a repair.
type Step struct {
	Server  string `json:"server,omitempty"` // the address of the server in the cluster; "" for any place
	On      string `json:"on,omitempty"`     // the host, for people
	Action  Action `json:"action"`
	Command string `json:"command,omitempty"`
	Until   string `json:"until,omitempty"` // the text for which a step waits
	Text    string `json:"text,omitempty"`  // what the step is for
}

// IsEmpty reports whether no file could be read as one of a database, and no text tells about a cluster.
func (r *Report) IsEmpty() bool { return len(r.Clusters)+len(r.Standalone) == 0 }

// Found reports whether a cluster has a problem that needs a repair.
func (r *Report) Found() bool {
	for _, c := range r.Clusters {
		for _, p := range c.Problems {
			if p.Severity != Note {
				return true
			}
		}
	}
	return false
}
