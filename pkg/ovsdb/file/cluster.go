package file

import (
	"encoding/json"
	"fmt"
	"sort"
)

// clusterHeader is the first record of a cluster member's file, and
// clusterRecord any later one (ovsdb(5), "Clustered Format" and "Joining a
// Cluster"). PrevData and Data are [schema, transaction].
type clusterHeader struct {
	ServerID        string            `json:"server_id"`
	ClusterID       string            `json:"cluster_id"`
	Name            string            `json:"name"`
	RemoteAddresses []string          `json:"remote_addresses"`
	PrevIndex       int64             `json:"prev_index"`
	PrevData        []json.RawMessage `json:"prev_data"`
}

type clusterRecord struct {
	Index       int64             `json:"index"`
	CommitIndex int64             `json:"commit_index"`
	Data        []json.RawMessage `json:"data"`
}

// raftLog converts a cluster member's log to the transactions that its server had
// applied, by Raft's rules (Ongaro, "Consensus: Bridging Theory and Practice", 2014):
//
//   - An entry whose index is already taken replaces that entry and all later
//     ones (3.5, AppendEntries step 3; raft_apply_record() in ovsdb/raft.c).
//   - Only committed entries are applied (3.5, 3.6.3). ovsdb-server appends a
//     commit_index record each time that index moves (raft_update_commit_index()
//     in ovsdb/raft.c), so the last one shows what its clients saw. A snapshot is
//     committed.
//   - An entry with a schema begins an empty database of that schema, and its
//     transaction is the whole content (ovsdb(5)).
//
// `ovsdb-tool cluster-to-standalone` (3.1) follows none of the three. See
// docs/architecture.md.
type raftLog struct {
	out         transactions
	last        int64      // the last entry to apply; 0 for all
	next        int64      // the index after the last entry's
	committed   int64      // the greatest index known to be committed
	uncommitted []logEntry // entries after committed, in order of index
	overwritten int
	missing     int // entries that the file lacks, by a gap in the indexes
}

// transactions receives the transactions of a cluster's log.
type transactions interface {
	position() int64 // of the next transaction
	addSchema(schema []byte) error
	add(transaction []byte) error
	cut(position int64) error // drops everything from a position on
}

// logEntry is a log entry that may still be taken back.
type logEntry struct {
	index  int64
	offset int64 // the position of its transaction
}

// begin writes the snapshot of the first record.
func (l *raftLog) begin(head clusterHeader) error {
	l.committed, l.next = head.PrevIndex, head.PrevIndex+1
	if err := l.out.addSchema(head.PrevData[0]); err != nil {
		return err
	}
	return l.addData(head.PrevData[1])
}

// add adds one later record. For text that is not a record of a cluster's log, the
// error is an errNotRecord.
func (l *raftLog) add(body []byte) (*clusterRecord, error) {
	var record clusterRecord
	if err := json.Unmarshal(body, &record); err != nil {
		return nil, errNotRecord{err}
	}
	if record.CommitIndex > l.committed {
		l.committed = record.CommitIndex
		for len(l.uncommitted) > 0 && l.uncommitted[0].index <= l.committed {
			l.uncommitted = l.uncommitted[1:]
		}
	}
	if record.Index == 0 || l.last > 0 && record.Index > l.last {
		return &clusterRecord{}, nil
	}
	return &record, l.addEntry(&record)
}

func (l *raftLog) addEntry(record *clusterRecord) error {
	if record.Index <= l.committed && record.Index < l.next {
		return errNotRecord{fmt.Errorf("it overwrites entry %d, which was committed", record.Index)}
	}
	if len(record.Data) != 0 && len(record.Data) != 2 {
		return errNotRecord{fmt.Errorf("entry %d has %d parts of data, not 2", record.Index, len(record.Data))}
	}
	if record.Index < l.next {
		n, err := l.takeBack(record.Index)
		if err != nil {
			return err
		}
		l.overwritten += n
	} else {
		l.missing += int(record.Index - l.next)
	}
	l.next = record.Index + 1
	if record.Index > l.committed {
		l.uncommitted = append(l.uncommitted, logEntry{record.Index, l.out.position()})
	}
	if len(record.Data) == 0 {
		return nil // a change of servers or timers
	}
	if !isNull(record.Data[0]) {
		if err := l.out.addSchema(record.Data[0]); err != nil {
			return err
		}
	}
	return l.addData(record.Data[1])
}

// takeBack removes the uncommitted entries from index on, and returns their number.
func (l *raftLog) takeBack(index int64) (int, error) {
	i := sort.Search(len(l.uncommitted), func(i int) bool { return l.uncommitted[i].index >= index })
	removed := l.uncommitted[i:]
	if len(removed) == 0 {
		return 0, nil
	}
	l.uncommitted = l.uncommitted[:i]
	return len(removed), l.out.cut(removed[0].offset)
}

func (l *raftLog) addData(transaction json.RawMessage) error {
	if isNull(transaction) {
		return nil
	}
	return l.out.add(transaction)
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// errNotRecord is the reason to leave a record out.
type errNotRecord struct{ reason error }

func (e errNotRecord) Error() string { return e.reason.Error() }
