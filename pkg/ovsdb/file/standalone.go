package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
)

// Standalone reads the database file src, of either form and possibly gzip'd,
// and writes dst: a standalone file that ovsdb-server serves to its last record.
// An undamaged standalone file is copied byte for byte. dst is replaced as a
// whole or not at all, and only its owner can read it. src is not changed.
//
// Changes that an anonymiser made inside records are kept, with lengths and sums
// corrected; text that was cut off or destroyed is left out. The remarks describe both.
// Info is the result of Inspect for src. Only the longest damaged record has to fit into
// memory, or the whole database if a record in the middle was lost (see rebuild). A
// gzip'd file is unpacked beside src.
func Standalone(ctx context.Context, src, dst string) (info Info, remarks []string, err error) {
	err = writeFile(dst, func(out *output) error {
		info, remarks, err = writeStandalone(ctx, src, out)
		return err
	})
	return info, remarks, err
}

// writeStandalone writes what Standalone does to out.
func writeStandalone(ctx context.Context, src string, out *output) (info Info, remarks []string, err error) {
	from, err := openSource(ctx, nil, src)
	if err != nil {
		return info, nil, err
	}
	defer func() { from.close() }()
	info, intact, err := copyIntact(ctx, from, out.file)
	if intact || err != nil {
		return info, nil, err
	}
	if err := out.cut(0); err != nil {
		return info, nil, err
	}
	if from, err = from.again(ctx); err != nil {
		return info, nil, err
	}
	return convert(ctx, src, from, out)
}

// StandaloneAt works like Standalone, but leaves out the transactions after the one with
// the number last: dst is the database as it was then.
func StandaloneAt(ctx context.Context, src, dst string, last int64) (Info, []string, error) {
	var info Info
	var remarks []string
	err := writeFile(dst, func(out *output) error {
		from, err := openSource(ctx, nil, src)
		if err != nil {
			return err
		}
		defer from.close()
		info, remarks, err = convertUntil(ctx, src, from, out, last)
		return err
	})
	return info, remarks, err
}

// Contradictions describes the changes that Standalone leaves out of the database file src
// because a record with a wrong sum contradicts others, as a damaged one does; nil for a file
// without damage, and for one that was rewritten on purpose. It needs space for a copy beside src.
func Contradictions(ctx context.Context, src string) ([]string, error) {
	unnamed, err := unnamedFile(filepath.Dir(src))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", src, err)
	}
	defer unnamed.Close()
	from, err := openSource(ctx, nil, src)
	if err != nil {
		return nil, err
	}
	defer from.close()
	converter, err := convertWith(ctx, src, from, outputTo(unnamed), 0)
	if err != nil || !converter.contradicts {
		return nil, err
	}
	return append(converter.drops, converter.rebuilt...), nil
}

// writeFile writes the database file dst: as a whole, or not at all if write fails. It
// does not sync it: a working copy is of no use after a power cut, when no daemon runs.
func writeFile(dst string, write func(out *output) error) error {
	out, err := newOutput(dst)
	if err != nil {
		return err
	}
	defer out.discard()
	if err := write(out); err != nil {
		return err
	}
	if err := out.buf.Flush(); err != nil {
		return err
	}
	return os.Rename(out.file.Name(), dst)
}

// convert writes the standalone form of src to out.
func convert(ctx context.Context, src string, from *source, out *output) (Info, []string, error) {
	return convertUntil(ctx, src, from, out, 0)
}

// convertUntil writes the standalone form of src to out, up to the transaction with the
// number last; 0 for all.
func convertUntil(ctx context.Context, src string, from *source, out *output, last int64) (Info, []string, error) {
	converter, err := convertWith(ctx, src, from, out, last)
	return converter.from.info, converter.remarks(), err
}

// convertWith converts the source of a file, and returns the converter that did it.
func convertWith(ctx context.Context, src string, from *source, out *output, last int64) (*converter, error) {
	if from.info.Form == FormStandalone {
		from.scan.sink = out
	}
	converter := &converter{from: from, out: out, stray: from.before, last: last}
	if err := converter.run(ctx); err != nil {
		return converter, fmt.Errorf("%s: %w", src, err)
	}
	return converter, nil
}

// converter writes a source's records to an output, and counts repairs and losses.
type converter struct {
	from *source
	out  *output
	log  *raftLog // of a clustered source
	last int64    // the number of the last transaction to write; 0 for all

	repaired     int              // records whose length or sum was corrected
	altered      bool             // one of them has the length of its header: perhaps no one rewrote it on purpose
	uuids        int              // UUIDs that were restored
	dropped      int              // records left out
	drops        []string         // the first of them, each with the reason
	torn         string           // remark about a last record that was cut off
	stray        int64            // bytes that belong to no record
	lost         bool             // something before the current record was left out
	inconsistent bool             // a record was written after a loss
	lostRows     map[string]int64 // rows named in records left out, with the output's offset there
	unapplied    int              // cluster entries that were never committed
	rebuilt      []string         // what rebuild left out
	contradicts  bool             // a repaired record contradicts others
}

func (c *converter) run(ctx context.Context) error {
	if c.from.info.Form == FormClustered {
		c.log = &raftLog{out: c.out, last: c.last}
	}
	for !c.isComplete() {
		record, err := c.from.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = c.convert(record)
		}
		if err != nil {
			return err
		}
	}
	err := c.finish()
	if err != nil || !c.inconsistent && !c.altered {
		return err
	}
	c.rebuilt, err = rebuild(ctx, c.out, c.lostRows, c.inconsistent)
	c.contradicts = c.altered && (len(c.rebuilt) > 0 || c.dropped > 0)
	return err
}

// isComplete reports whether all wanted records of a standalone file are written. In a
// cluster's log, the records after an entry say whether it was committed.
func (c *converter) isComplete() bool {
	return c.log == nil && c.last > 0 && int64(c.from.scan.number) > c.last && c.from.first == nil
}

// convert writes one record, repaired if needed, or records why it is left out.
func (c *converter) convert(record *record) error {
	body := record.body
	if !record.intact {
		var reason string
		if body, reason = c.repair(record); reason != "" {
			c.drop(record, reason)
			return nil
		}
	}
	if err := c.write(record, body); err != nil {
		if refused, ok := errors.AsType[errNotRecord](err); ok {
			c.drop(record, refused.Error())
			return nil
		}
		return err
	}
	if c.lost {
		c.inconsistent = true
	}
	if record.strayBytes() > 0 {
		c.stray += record.strayBytes()
		c.lost = true
	}
	return nil
}

// write writes a record whose text is correct.
func (c *converter) write(record *record, body []byte) error {
	if record.copied {
		return nil
	}
	if clustered := record.magic == "CLUSTER"; clustered != (c.log != nil) {
		return errNotRecord{fmt.Errorf("a %s record in a %s database", record.magic, c.from.info.Form)}
	}
	if c.log != nil {
		return c.writeEntry(record, body)
	}
	if record.number == 1 {
		c.out.schemas = []int64{0}
	}
	if record.intact {
		return c.out.write(record.line, body)
	}
	return c.out.add(body)
}

// writeEntry writes a record of a cluster member.
func (c *converter) writeEntry(record *record, body []byte) error {
	if record.number > 1 {
		entry, err := c.log.add(body)
		if entry != nil {
			c.from.noteSchema(entry.Data)
		}
		if c.log.missing > 0 {
			c.inconsistent = true
		}
		return err
	}
	head := c.from.head
	c.from.head = clusterHeader{} // frees its memory, which may hold most of the database
	if !record.intact {
		head = clusterHeader{}
		if err := json.Unmarshal(body, &head); err != nil {
			return errNotRecord{err}
		}
	}
	if err := c.log.begin(head); err != nil || record.snapshot == nil {
		return err
	}
	return c.out.addFrom(c.from.scan.file, *record.snapshot)
}

// drop counts a record that is left out, and keeps the reason.
func (c *converter) drop(record *record, reason string) {
	c.lost = true
	if record.last && strings.HasPrefix(reason, cutOff) {
		c.torn = fmt.Sprintf("record %d, the last one (at offset %d), is %s: left out; all records before it are served", record.number, record.offset, reason)
		return
	}
	if c.lostRows == nil {
		c.lostRows = map[string]int64{}
	}
	body, _ := repairUUIDs(record.body)
	for _, found := range rowKey.FindAllSubmatch(body, -1) {
		c.lostRows[string(found[1])] = c.out.offset
	}
	if c.dropped++; c.dropped <= maxDrops {
		c.drops = append(c.drops, fmt.Sprintf("record %d (at offset %d) left out: %s", record.number, record.offset, reason))
	}
}

// rowKey matches the name of a row in a transaction that inserts or changes it.
var rowKey = lazyregexp.New(`"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})":\{`)

// maxDrops bounds the number of left-out records that have a remark of their own.
const maxDrops = 5

func (c *converter) finish() error {
	if len(c.out.schemas) == 0 {
		return fmt.Errorf("%w: record 1; collect the database again", ErrSchema)
	}
	if c.log != nil {
		var err error
		if c.unapplied, err = c.log.takeBack(c.log.committed); err != nil {
			return err
		}
	}
	moved, err := c.out.dropEarlier()
	for uuid := range c.lostRows {
		c.lostRows[uuid] -= moved
	}
	return err
}

// remarks describes what was done to the database, in sentences.
func (c *converter) remarks() []string {
	var remarks []string
	add := func(n int, noun, text string) {
		if n > 0 {
			remarks = append(remarks, phrase.Count(n, noun)+" "+text)
		}
	}
	if c.contradicts {
		add(c.repaired, "record", "not as the server wrote them: damaged, since they contradict other records")
	} else {
		add(c.repaired, "record", "rewritten since the server wrote them, as `sos clean` does: "+
			"lengths and sums corrected, all of them are served")
	}
	add(c.uuids, "UUID", "rewritten as MAC addresses are: given the form of a UUID again, "+
		"different from the live ones but the same everywhere")
	remarks = append(remarks, c.drops...)
	add(c.dropped-maxDrops, "more record", "left out likewise")
	add(int(c.stray), "byte", "between or after records that belong to no record: left out")
	if c.torn != "" {
		remarks = append(remarks, c.torn)
	}
	if c.from.broken != nil {
		remarks = append(remarks, fmt.Sprintf("the gzip stream breaks off (%v): what precedes the break is served", c.from.broken))
	}
	if c.log != nil {
		add(c.log.overwritten, "entry", "of the cluster's log replaced by a later leader: left out")
		add(c.log.missing, "entry", "of the cluster's log missing")
		add(c.unapplied, "entry", "at the end of the cluster's log not committed yet, "+
			"so the live server did not show them: left out")
	}
	return append(remarks, c.rebuilt...)
}
