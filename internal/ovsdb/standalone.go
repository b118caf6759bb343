package ovsdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// Standalone reads the database file src, of either form and perhaps gzip'd,
// and writes dst: a standalone file that ovsdb-server serves to its last
// record. An undamaged standalone file is copied byte for byte. dst is replaced
// at once or not at all, and is readable by its owner only. src is not changed.
//
// What an anonymiser changed inside records is kept, with lengths and sums made
// right; text that was cut off or destroyed is left out. The remarks say what
// was done, for a person. Info is what Inspect would tell of src.
//
// Memory use is small for an undamaged file, and that of the longest damaged
// record for others: two to three times that where it is a cluster's snapshot.
// What a gzip'd file holds needs room beside src. Only when a record in the middle was lost does the whole database have
// to be in memory (see rebuild).
func Standalone(ctx context.Context, src, dst string) (Info, []string, error) {
	out, err := newOutput(dst)
	if err != nil {
		return Info{}, nil, err
	}
	installed := false
	defer func() { out.discard(installed) }()
	info, remarks, err := transcribe(ctx, src, out)
	if err != nil {
		return info, remarks, err
	}
	if err := out.install(dst); err != nil {
		return info, remarks, err
	}
	installed = true
	return info, remarks, nil
}

// transcribe writes the standalone form of src to out.
func transcribe(ctx context.Context, src string, out *output) (Info, []string, error) {
	in, err := os.Open(src)
	if err != nil {
		return Info{}, nil, fmt.Errorf("opening the database: %w", err)
	}
	defer in.Close()
	from, err := newSource(ctx, in)
	if err != nil {
		return Info{}, nil, fmt.Errorf("%s: %w", src, err)
	}
	defer from.close()
	if from.info.Form == FormStandalone {
		from.scan.onward = out
	}
	remarks, err := carry(ctx, from, out)
	if err != nil {
		return from.info, remarks, fmt.Errorf("%s: %w", src, err)
	}
	return from.info, remarks, nil
}

// carry writes the records of a source to out.
func carry(ctx context.Context, from *source, out *output) ([]string, error) {
	c := copier{from: from, out: out, stray: from.before}
	err := c.run(ctx)
	return c.remarks(), err
}

// copier carries records from a source to an output and counts what it mends
// and leaves out.
type copier struct {
	from *source
	out  *output
	log  *raftLog // of a clustered source

	mended    int              // records whose length or sum was made right
	uuids     int              // UUIDs put together again
	dropped   int              // records left out
	first     []string         // of them, each with the reason
	named     *regexp.Regexp   // rowKey; nil before a record is left out
	torn      string           // how the last record was cut off
	stray     int64            // bytes that belong to no record
	lost      bool             // something before the current record was left out
	holed     bool             // a record was written after a loss
	lostRows  map[string]int64 // rows in the records left out, and where in the output those would stand
	unapplied int              // cluster entries that were never committed
	rebuilt   []string         // what a rebuild had to leave out
}

func (c *copier) run(ctx context.Context) error {
	if c.from.info.Form == FormClustered {
		c.log = &raftLog{out: c.out}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := c.from.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := c.take(r); err != nil {
			return err
		}
	}
	if err := c.finish(); err != nil {
		return err
	}
	if !c.holed {
		return nil
	}
	var err error
	c.rebuilt, err = rebuild(ctx, c.out, c.lostRows)
	return err
}

// take writes one record, mended where needed, or notes why it cannot.
func (c *copier) take(r *record) error {
	body := r.body
	if !r.intact {
		var why string
		if body, why = c.mend(r); why != "" {
			c.drop(r, why)
			return nil
		}
	}
	if err := c.put(r, body); err != nil {
		var refused errNotRecord
		if errors.As(err, &refused) {
			c.drop(r, refused.Error())
			return nil
		}
		return err
	}
	if c.lost {
		c.holed = true
	}
	if r.stray() > 0 {
		c.stray += r.stray()
		c.lost = true
	}
	return nil
}

// put writes a record whose body is right.
func (c *copier) put(r *record, body []byte) error {
	switch {
	case r.passed:
		return nil
	case r.magic != c.from.magic():
		return errNotRecord{fmt.Errorf("a %s record in a %s database", r.magic, c.from.info.Form)}
	case c.log != nil && r.number == 1:
		return c.begin(r, body)
	case c.log != nil:
		entry, err := c.log.add(body)
		if entry != nil {
			c.from.noteSchema(entry.Data)
		}
		if c.log.missing > 0 {
			c.holed = true
		}
		return err
	case r.number == 1:
		c.out.starts = []int64{0}
		fallthrough
	default:
		if r.intact {
			return c.out.write(r.header, body)
		}
		return c.out.add(body)
	}
}

// begin takes the first record of a cluster member.
func (c *copier) begin(r *record, body []byte) error {
	head := c.from.head
	c.from.head = clusterHeader{} // it may be most of the database
	if !r.intact {
		head = clusterHeader{}
		if err := json.Unmarshal(body, &head); err != nil {
			return errNotRecord{err}
		}
	}
	if err := c.log.begin(head); err != nil || r.snapshot == nil {
		return err
	}
	return c.out.insert(c.from.scan.file, r)
}

// mend returns the text of a record whose length or sum is wrong, or why it has
// to be left out. Text that is still a JSON object was rewritten on purpose, as
// `sos clean` does: the header is what is wrong then.
func (c *copier) mend(r *record) (body []byte, why string) {
	body = bytes.TrimSpace(r.body)
	if int64(len(r.body)) < r.size || len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		if r.last && r.size < r.length {
			return nil, fmt.Sprintf("cut off after %d of %d bytes", r.size, r.length)
		}
		return nil, "its text is not valid JSON any more"
	}
	body, n := mendUUIDs(body)
	c.mended++
	c.uuids += n
	return body, ""
}

// rowKey is the name of a row in a transaction that inserts or changes it.
const rowKey = `"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})":\{`

// drop notes a record that is left out.
func (c *copier) drop(r *record, why string) {
	c.lost = true
	if r.last && strings.HasPrefix(why, "cut off") {
		c.torn = fmt.Sprintf("record %d, the last one, is %s: left out; all records before it are there", r.number, why)
		return
	}
	if c.lostRows == nil {
		c.lostRows, c.named = map[string]int64{}, regexp.MustCompile(rowKey)
	}
	body, _ := mendUUIDs(r.body)
	for _, found := range c.named.FindAllSubmatch(body, -1) {
		c.lostRows[string(found[1])] = c.out.offset
	}
	if c.dropped++; c.dropped <= maxDropped {
		c.first = append(c.first, fmt.Sprintf("record %d (at offset %d) left out: %s", r.number, r.offset, why))
	}
}

func (c *copier) finish() error {
	if len(c.out.starts) == 0 {
		return fmt.Errorf("%w: record 1; collect the database again", ErrSchema)
	}
	if c.log != nil {
		var err error
		if c.unapplied, err = c.log.finish(); err != nil {
			return err
		}
	}
	moved, err := c.out.settle()
	for uuid := range c.lostRows {
		c.lostRows[uuid] -= moved
	}
	return err
}

// maxDropped bounds how many left-out records are named one by one.
const maxDropped = 5

// remarks says in sentences what was done to the database.
func (c *copier) remarks() []string {
	var said []string
	say := func(n int, one, many, what string) {
		if n > 0 {
			said = append(said, count(n, one, many)+" "+what)
		}
	}
	say(c.mended, "record", "records", "rewritten since the server wrote them, as `sos clean` does: "+
		"lengths and sums made right, all of them are served")
	say(c.uuids, "UUID", "UUIDs", "rewritten as MAC addresses are: given the form of a UUID again, "+
		"other than the live ones but the same wherever they stand")
	said = append(said, c.first...)
	say(c.dropped-maxDropped, "more record", "more records", "left out likewise")
	say(int(c.stray), "byte", "bytes", "between or after records, of no record: left out")
	if c.torn != "" {
		said = append(said, c.torn)
	}
	if c.from.packed != nil && c.from.packed.cut != nil {
		said = append(said, fmt.Sprintf("the gzip stream breaks off (%v): what it held until then is served", c.from.packed.cut))
	}
	if c.log != nil {
		say(c.log.overwritten, "entry", "entries", "of the cluster's log replaced by a later leader's: left out")
		say(c.log.missing, "entry", "entries", "of the cluster's log missing")
		say(c.unapplied, "entry", "entries", "at the end of the cluster's log not committed yet, "+
			"so the live server did not show them: left out")
	}
	return append(said, c.rebuilt...)
}

func count(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// magic is the word in the headers of this file's form.
func (s *source) magic() string {
	if s.info.Form == FormClustered {
		return "CLUSTER"
	}
	return "JSON"
}

// mangledUUID is a UUID that sos took for a 64-bit MAC address. Its pattern for
// one matched the middle of every UUID, which became 53:4f:53 ("SOS") and three
// random bytes, the same for the same middle (sos issue 3736, up to 4.8.0):
// 0190fe17-d1ae-7091-a034-22ade2121dc0 -> 01953:4f:53:1b:2c:3d-22ade2121dc0.
const mangledUUID = `\b([0-9a-f]{3})53:4f:53:([0-9a-f]{2}):([0-9a-f]{2}):([0-9a-f]{2})-([0-9a-f]{12})\b`

// mendUUIDs gives mangled UUIDs the form of a UUID, the same one for the same
// text, and tells how many there were. A row without one is refused by
// ovsdb-server, and its whole transaction with it. What differs goes to the end
// of the first part, by which ovsdb-server finds rows (see spread).
func mendUUIDs(body []byte) ([]byte, int) {
	if !bytes.Contains(body, []byte("53:4f:53:")) {
		return body, 0
	}
	n := 0
	pattern := regexp.MustCompile(mangledUUID)
	body = pattern.ReplaceAllFunc(body, func(found []byte) []byte {
		n++
		p := pattern.FindSubmatch(found)
		return fmt.Appendf(nil, "%s%s%s%s-%s534-f530-0000-%s",
			p[1], p[2], p[3], p[4][:1], p[4][1:], p[5])
	})
	return body, n
}
