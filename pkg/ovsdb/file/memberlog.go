package file

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"
)

// MemberLog reads what the file of a cluster's member says about the cluster, record by record. It
// skips the data of the database, and holds one record in memory.
//
// It ends where ovsdb-server ends: at the first record that cannot be read. A record that was
// rewritten, as by `sos clean`, is read nevertheless.
type MemberLog struct {
	Header MemberHeader
	// Damage says why the file ends before its last byte, once Next has returned io.EOF; "" if it
	// does not. Ignored is the number of header lines after that place.
	Damage  string
	Ignored int

	from  *source
	ended bool
}

// MemberHeader is the first record of a member's file (ovsdb(5), "Clustered Format").
type MemberHeader struct {
	Server  string `json:"server_id"`
	Cluster string `json:"cluster_id"` // "" before the server has joined, where it was not given
	Name    string `json:"name"`       // of the database
	Address string `json:"local_address"`
	// Remotes are the addresses of servers to join. The server has not joined if there are any.
	Remotes []string `json:"remote_addresses"`

	// The snapshot that the log begins with.
	Servers       map[string]string `json:"prev_servers"` // addresses by the server's UUID
	Index         int64             `json:"prev_index"`
	Term          int64             `json:"prev_term"`
	Entry         string            `json:"prev_eid"`
	ElectionTimer int64             `json:"prev_election_timer"` // in milliseconds; 0 for the usual one
	Version       string            `json:"-"`                   // of the schema
	Changed       time.Time         `json:"-"`                   // of the last transaction in it; zero if it is large or has none
}

// Joining reports whether the server has not joined its cluster yet.
func (h *MemberHeader) Joining() bool { return h.Remotes != nil }

// MemberRecord is a later record of a member's file.
type MemberRecord struct {
	Number  int // as ovsdb-tool check-cluster counts: that after the header is 1
	Comment string
	// Term is that of an entry, a vote, a leader, or a term that began; 0 for other records.
	Term        int64
	Index       int64  // of an entry
	CommitIndex int64  // of a record that entries up to it are committed
	Vote        string // the UUID of the server that this one voted for
	Leader      string // the UUID of the server that this one knows as the leader
	Note        string // "left"
	Entry       MemberEntry
}

// MemberEntry is what an entry of the log consists of beside its term and index.
type MemberEntry struct {
	ID            EntryID           // zero for an entry without data
	Servers       map[string]string // the servers from this entry on; nil if they stay
	ElectionTimer int64             // from this entry on; 0 if it stays
	Version       string            // of the schema to which the entry converts the database
	Time          time.Time         // of its transaction; zero if it has none
	Data          EntryData
}

// EntryID is the UUID of an entry: two entries with one have the same data.
type EntryID = binaryUUID

// EntryData is where the data of an entry is. Entries with equal sums have equal data; the texts of
// equal data may differ.
type EntryData struct {
	Offset, Length int64
	Sum            [8]byte
}

// OpenMember opens the file of a cluster's member, which may be gzip'd. open opens it, os.Open if it is nil. The error
// wraps ErrNotClustered for a database that is in no cluster.
func OpenMember(ctx context.Context, open Opener, path string) (*MemberLog, error) {
	from, err := openRecords(ctx, open, path)
	if err != nil {
		return nil, err
	}
	log := &MemberLog{from: from}
	if err := log.readHeader(); err != nil {
		from.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	from.scan.heads = true
	return log, nil
}

// maxServers bounds the servers of a cluster: each is compared with each.
const maxServers = 1000

// ErrNotClustered is wrapped for a database file that no member of a cluster wrote.
var ErrNotClustered = errors.New("not the file of a cluster's member")

// Close closes the file.
func (l *MemberLog) Close() { l.from.close() }

func (l *MemberLog) readHeader() error {
	first := l.from.first
	l.from.first = nil
	if first.magic != "CLUSTER" {
		return fmt.Errorf("%w: its database is standalone", ErrNotClustered)
	}
	body := textOf(first)
	var data struct {
		Data []json.RawMessage `json:"prev_data"`
	}
	if body == nil || json.Unmarshal(body, &l.Header) != nil || json.Unmarshal(body, &data) != nil {
		return fmt.Errorf("%w: record 1 can't be read; collect the database again", ErrSchema)
	}
	if len(l.Header.Servers) > maxServers {
		return fmt.Errorf("%w: record 1 has %d servers", ErrSchema, len(l.Header.Servers))
	}
	if l.Header.Server == "" {
		return errTailed("record 1 is not the first record of a cluster member")
	}
	if len(data.Data) == 2 {
		schema, _ := parseSchemaHead(data.Data[0]) // without one, the version is not known
		l.Header.Version, l.Header.Changed = schema.Version, dateIn(data.Data[1])
	}
	l.noteStray(first, 1)
	return nil
}

// textOf returns the text of a record: of one that was rewritten too, nil for one that can't be read.
func textOf(record *record) []byte {
	if record.intact || json.Valid(record.body) {
		return record.body
	}
	return nil
}

// noteStray ends the log after a record that bytes of no record follow.
func (l *MemberLog) noteStray(record *record, number int) {
	if n := record.strayBytes(); n > 0 {
		l.end("record %d at offset %d is followed by %d bytes that belong to no record", number, record.offset, n)
	}
}

func (l *MemberLog) end(format string, args ...any) {
	l.Damage, l.ended = fmt.Sprintf(format, args...), true
}

// Next returns the next record, or io.EOF.
func (l *MemberLog) Next() (*MemberRecord, error) {
	if l.ended {
		return nil, l.skip()
	}
	read, err := l.from.next()
	if err == io.EOF && l.from.broken != nil {
		l.Damage = fmt.Sprintf("the gzip stream is cut off or broken at its end: %v", l.from.broken)
	}
	if err != nil {
		return nil, err
	}
	record := &MemberRecord{Number: read.number - 1}
	body := textOf(read)
	if body == nil || read.magic != "CLUSTER" || record.parse(body) != nil {
		l.end("record %d at offset %d %s", record.Number, read.offset, unreadable(read))
		return nil, l.skip()
	}
	if !l.from.info.Gzip {
		record.locate(read, body)
	}
	l.noteStray(read, record.Number)
	return record, nil
}

// unreadable says what is wrong with a record.
func unreadable(read *record) string {
	switch {
	case read.intact:
		return "is not a record of a cluster's log"
	case read.last && read.size < read.length:
		return fmt.Sprintf("is cut off after %d of %d bytes", read.size, read.length)
	}
	return "is damaged"
}

// skip counts the records after the one at which the log ends.
func (l *MemberLog) skip() error {
	for {
		if _, err := l.from.next(); err != nil {
			return err
		}
		l.Ignored++
	}
}

// recordText is a record as it is written.
type recordText struct {
	Comment       string            `json:"comment"`
	Term          int64             `json:"term"`
	Index         int64             `json:"index"`
	CommitIndex   int64             `json:"commit_index"`
	Vote          string            `json:"vote"`
	Leader        string            `json:"leader"`
	Note          string            `json:"note"`
	ID            string            `json:"eid"`
	Servers       map[string]string `json:"servers"`
	ElectionTimer int64             `json:"election_timer"`
	Data          json.RawMessage   `json:"data"`
}

func (r *MemberRecord) parse(body []byte) error {
	var text recordText
	if err := json.Unmarshal(body, &text); err != nil {
		return err
	}
	if len(text.Servers) > maxServers {
		return fmt.Errorf("%d servers", len(text.Servers))
	}
	r.Comment, r.Note, r.CommitIndex = text.Comment, text.Note, text.CommitIndex
	r.Term, r.Index, r.Vote, r.Leader = text.Term, text.Index, text.Vote, text.Leader
	r.Entry.Servers, r.Entry.ElectionTimer = text.Servers, text.ElectionTimer
	r.Entry.ID, _ = parseUUID([]byte(text.ID)) // there is none in an entry without data
	if r.Index == 0 || text.Data == nil {
		return nil
	}
	sum := sha1.Sum(text.Data)
	copy(r.Entry.Data.Sum[:], sum[:])
	r.Entry.Data.Length = int64(len(text.Data))
	r.Entry.Time = dateIn(text.Data)
	if bytes.HasPrefix(text.Data, []byte("[{")) { // it may convert the schema; ordinary entries begin with null
		var parts []json.RawMessage
		if json.Unmarshal(text.Data, &parts) == nil && len(parts) == 2 {
			schema, _ := parseSchemaHead(parts[0])
			r.Entry.Version = schema.Version
		}
	}
	return nil
}

// locate notes where the data of the record is in the file.
func (r *MemberRecord) locate(read *record, body []byte) {
	if read.data.length > 0 {
		r.Entry.Data.Offset, r.Entry.Data.Length = read.data.offset, read.data.length
		return
	}
	const key = `"data":[` // as ovsdb-server writes it
	if i := bytes.Index(body, []byte(key)); i >= 0 && r.Entry.Data.Length > 0 {
		r.Entry.Data.Offset = read.offset + int64(len(read.line)+i+len(key)-1)
	}
}

// dateIn returns the time in the text of a transaction, zero if it has none.
func dateIn(text []byte) time.Time {
	key := []byte(`"_date":`)
	for from := 0; ; {
		i := bytes.Index(text[from:], key)
		if i < 0 {
			return time.Time{}
		}
		from += i + len(key)
		if i := from - len(key); i > 0 && text[i-1] == '\\' {
			continue // part of a string
		}
		number, _, _ := bytes.Cut(text[from:min(len(text), from+24)], []byte(","))
		number, _, _ = bytes.Cut(number, []byte("}"))
		return parseDate(number)
	}
}

// maxCompared bounds the data of entries whose texts are compared, in bytes.
const maxCompared = 16 << 20

// SameData reports whether the data of two entries, each in the file of a member, is equal. known is
// false if it is too large to compare.
func SameData(pathA string, a EntryData, pathB string, b EntryData) (same, known bool, err error) {
	if a.Length == b.Length && a.Sum == b.Sum && a.Sum != ([8]byte{}) {
		return true, true, nil
	}
	if (a.Length == 0) != (b.Length == 0) {
		return false, true, nil
	}
	if max(a.Length, b.Length) > maxCompared || min(a.Offset, b.Offset) == 0 {
		return false, false, nil
	}
	textA, errA := readData(pathA, a)
	textB, errB := readData(pathB, b)
	if err := errors.Join(errA, errB); err != nil {
		return false, false, err
	}
	return equalJSON(textA, textB), true, nil
}

// equalJSON reports whether two texts are the same JSON, whatever the order of members of objects.
func equalJSON(a, b []byte) bool {
	var values [2]any
	for i, text := range [][]byte{a, b} {
		in := json.NewDecoder(bytes.NewReader(text))
		in.UseNumber()
		if in.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func readData(path string, data EntryData) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readSpan(file, span{data.Offset, data.Length})
}
