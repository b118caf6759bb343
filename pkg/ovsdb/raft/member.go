// Package raft replays what the file of a cluster's member says about the cluster, by the rules of
// ovsdb-server and of ovsdb-tool check-cluster (ovsdb/raft.c and ovsdb/ovsdb-tool.c of Open vSwitch).
package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"ovs-offline/pkg/ovsdb/file"
)

// Member is the state of a cluster's member as its file has it.
type Member struct {
	file.MemberHeader
	Path string

	CurrentTerm int64
	Vote        string // the server that it voted for in the current term, "" for none
	Leader      string // the server that it knew as the leader of the current term, "" for none
	Committed   int64  // the greatest index that it knew to be committed

	// Entries are the entries of the log after the snapshot, in order. The first has the index First.
	Entries []Entry
	// Changes are the entries that change the servers, Timers the ones that change the election timer,
	// and Versions the ones that change the version of the schema.
	Changes  []Change
	Timers   []Timer
	Versions []Version

	Leaders []Ballot // of the terms for which a record names the leader
	Votes   []Ballot // that the server gave

	Left bool // the server has left the cluster, and cannot start on this file
	// TakenBack are records that replaced entries.
	TakenBack []TakenBack
	// Refused is why ovsdb-server refuses the file, and Contradiction why check-cluster alone does;
	// "" if they do not. The state is that before the record in question.
	Refused       string
	Contradiction string
	Gap           bool // it is refused because entries are missing
	// Damage and Ignored are as in file.MemberLog.
	Damage  string
	Ignored int

	elected map[int64]int64 // index after its last entry when it became the leader of a term
	commits map[int64]int64 // greatest index that was committed in a term
}

// Entry is an entry of the log.
type Entry struct {
	Term int64
	ID   file.EntryID
	Time int64 // in milliseconds since 1970; 0 if it has none
	Data file.EntryData
}

// At returns the time of an entry, zero if it has none.
func (e *Entry) At() time.Time {
	if e.Time == 0 {
		return time.Time{}
	}
	return time.UnixMilli(e.Time).UTC()
}

// Change is a change of the cluster's servers.
type Change struct {
	Index   int64
	Servers map[string]string // addresses by the server's UUID
}

// Timer is a change of the election timer.
type Timer struct {
	Index        int64
	Milliseconds int64
}

// Version is a conversion to another version of the schema.
type Version struct {
	Index   int64
	Version string
}

// Ballot is the server of a term: its leader, or the one that got a vote.
type Ballot struct {
	Term   int64
	Server string
}

// TakenBack is a record that replaced entries that were not committed.
type TakenBack struct {
	Record   int
	From, To int64 // the first and the last index
}

// Read reads the file of a member. open opens it, os.Open if it is nil. If no member wrote the file, Read returns
// the error of file.OpenMember.
func Read(ctx context.Context, open file.Opener, path string) (*Member, error) {
	log, err := file.OpenMember(ctx, open, path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	m := &Member{MemberHeader: log.Header, Path: path, Committed: log.Header.Index, CurrentTerm: 0,
		elected: map[int64]int64{}, commits: map[int64]int64{}}
	for {
		record, err := log.Next()
		if errors.Is(err, io.EOF) {
			m.Damage, m.Ignored = log.Damage, log.Ignored
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if m.Refused == "" && !m.Left {
			m.apply(record)
		}
	}
}

// First returns the index of the first entry after the snapshot.
func (m *Member) First() int64 { return m.Index + 1 }

// Last returns the index of the last entry, or of the snapshot.
func (m *Member) Last() int64 { return m.Index + int64(len(m.Entries)) }

// At returns the entry with an index, nil if the log does not have it.
func (m *Member) At(index int64) *Entry {
	if index < m.First() || index > m.Last() {
		return nil
	}
	return &m.Entries[index-m.First()]
}

// LastTerm returns the term of the last entry, or of the snapshot.
func (m *Member) LastTerm() int64 {
	if last := m.At(m.Last()); last != nil {
		return last.Term
	}
	return m.MemberHeader.Term
}

// KnownTerm returns the latest term that the server knows of.
func (m *Member) KnownTerm() int64 { return max(m.CurrentTerm, m.LastTerm()) }

// LastTime returns the time of the last entry up to an index that has one, zero if none has.
func (m *Member) LastTime(index int64) time.Time {
	for i := min(index, m.Last()); i >= m.First(); i-- {
		if at := m.At(i).At(); !at.IsZero() {
			return at
		}
	}
	return m.Changed
}

// ServersAt returns the servers of the cluster as of an index, and the index of the entry that made
// them so.
func (m *Member) ServersAt(index int64) (servers map[string]string, since int64) {
	servers, since = m.Servers, m.Index
	for _, change := range m.Changes {
		if change.Index <= index {
			servers, since = change.Servers, change.Index
		}
	}
	return servers, since
}

// UsualElectionTimer is the election timer of a cluster that was given none, in milliseconds.
const UsualElectionTimer = 1000

// TimerAt returns the election timer as of an index, in milliseconds.
func (m *Member) TimerAt(index int64) int64 {
	timer := m.ElectionTimer
	for _, change := range m.Timers {
		if change.Index <= index {
			timer = change.Milliseconds
		}
	}
	if timer == 0 {
		return UsualElectionTimer
	}
	return timer
}

// VersionAt returns the version of the schema as of an index.
func (m *Member) VersionAt(index int64) string {
	version := m.Version
	for _, change := range m.Versions {
		if change.Index <= index {
			version = change.Version
		}
	}
	return version
}

// Listed reports whether the file ever counts its own server among the cluster's servers. Belongs reports
// whether it does so at its end. ovsdb-server refuses a file whose server does not belong to the cluster.
func (m *Member) Listed() bool {
	if _, listed := m.Servers[m.Server]; listed {
		return true
	}
	return slices.ContainsFunc(m.Changes, func(change Change) bool { return change.Servers[m.Server] != "" })
}

// Belongs is described at Listed.
func (m *Member) Belongs() bool {
	servers, _ := m.ServersAt(m.Last())
	_, listed := servers[m.Server]
	return listed
}

// Elections returns the terms after the last one with a leader or an entry in which the server asked
// for votes for itself.
func (m *Member) Elections() int {
	last := m.LastTerm()
	for _, leader := range m.Leaders {
		last = max(last, leader.Term)
	}
	count := 0
	for _, vote := range m.Votes {
		if vote.Term > last && vote.Server == m.Server {
			count++
		}
	}
	return count
}

func (m *Member) apply(record *file.MemberRecord) {
	if record.Term > m.CurrentTerm {
		m.CurrentTerm, m.Vote, m.Leader = record.Term, "", ""
	}
	switch {
	case record.Note != "":
		m.Left = record.Note == "left"
	case record.CommitIndex != 0:
		m.commit(record)
	case record.Leader != "":
		m.lead(record)
	case record.Vote != "":
		m.vote(record)
	case record.Index != 0:
		m.append(record)
	}
}

func (m *Member) refuse(record *file.MemberRecord, format string, args ...any) {
	m.Refused = fmt.Sprintf("record %d ", record.Number) + fmt.Sprintf(format, args...)
}

func (m *Member) commit(record *file.MemberRecord) {
	switch index := record.CommitIndex; {
	case index < m.Committed:
		m.refuse(record, "sets the index of the last committed entry back from %d to %d", m.Committed, index)
	case index > m.Last(): // on a full disk, this short record can fit where an entry does not
		m.Gap = true
		m.refuse(record, "says that entry %d is committed, and the log ends at entry %d", index, m.Last())
	default:
		m.Committed = index
		m.commits[m.CurrentTerm] = max(m.commits[m.CurrentTerm], index)
	}
}

func (m *Member) lead(record *file.MemberRecord) {
	if m.Leader != "" && m.Leader != record.Leader {
		m.contradict(record, "names another leader of term %d than a record before it", m.CurrentTerm)
		return
	}
	if m.Leader == "" {
		m.Leaders = append(m.Leaders, Ballot{m.CurrentTerm, record.Leader})
	}
	m.Leader = record.Leader
	if record.Leader == m.Server {
		m.elected[m.CurrentTerm] = max(m.elected[m.CurrentTerm], m.Last()+1)
	}
}

func (m *Member) contradict(record *file.MemberRecord, format string, args ...any) {
	if m.Contradiction == "" {
		m.Contradiction = fmt.Sprintf("record %d ", record.Number) + fmt.Sprintf(format, args...)
	}
}

func (m *Member) vote(record *file.MemberRecord) {
	switch {
	case record.Term < m.CurrentTerm:
		m.refuse(record, "votes in term %d, and the term was %d already", record.Term, m.CurrentTerm)
	case m.Vote != "" && m.Vote != record.Vote:
		m.refuse(record, "votes for a second server in term %d", record.Term)
	case m.Vote == "":
		m.Vote = record.Vote
		m.Votes = append(m.Votes, Ballot{record.Term, record.Vote})
	}
}

func (m *Member) append(record *file.MemberRecord) {
	index := record.Index
	// As ovsdb-server does it, the committed entry itself may be replaced: it is the same one then.
	if index < m.Committed {
		m.refuse(record, "replaces the entries from %d on, and those up to %d are committed", index, m.Committed)
		return
	}
	if index > m.Last()+1 {
		m.Gap = true
		m.refuse(record, "has entry %d, and the log ends at entry %d: the entries between are lost", index, m.Last())
		return
	}
	if index < m.First() {
		m.refuse(record, "replaces entry %d, which is in the snapshot", index)
		return
	}
	if index <= m.Last() {
		m.takeBack(record)
	}
	if last := m.LastTerm(); record.Term < last {
		m.refuse(record, "has entry %d of term %d after an entry of term %d", index, record.Term, last)
		return
	}
	entry := Entry{Term: record.Term, ID: record.Entry.ID, Data: record.Entry.Data}
	if at := record.Entry.Time; !at.IsZero() {
		entry.Time = at.UnixMilli()
	}
	m.Entries = append(m.Entries, entry)
	if record.Entry.Servers != nil {
		m.Changes = append(m.Changes, Change{index, record.Entry.Servers})
	}
	if record.Entry.ElectionTimer != 0 {
		m.Timers = append(m.Timers, Timer{index, record.Entry.ElectionTimer})
	}
	if record.Entry.Version != "" {
		m.Versions = append(m.Versions, Version{index, record.Entry.Version})
	}
}

// takeBack removes the entries that a record replaces.
func (m *Member) takeBack(record *file.MemberRecord) {
	index := record.Index
	if m.Leader == m.Server {
		m.contradict(record, "replaces the entries from %d on while the server is the leader", index)
	}
	m.TakenBack = append(m.TakenBack, TakenBack{record.Number, index, m.Last()})
	m.Entries = m.Entries[:index-m.First()]
	m.Changes = m.Changes[:sort.Search(len(m.Changes), func(i int) bool { return m.Changes[i].Index >= index })]
	m.Timers = m.Timers[:sort.Search(len(m.Timers), func(i int) bool { return m.Timers[i].Index >= index })]
	m.Versions = m.Versions[:sort.Search(len(m.Versions), func(i int) bool { return m.Versions[i].Index >= index })]
}
