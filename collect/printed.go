package collect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// essential are tables without which no database of the kind can answer anything.
func essential(kind workdir.Kind) []string {
	return map[workdir.Kind][]string{workdir.NB: {"Logical_Switch", "Logical_Router"}, workdir.SB: {ovn.DatapathTable}}[kind]
}

// printed puts the tables that commands printed together: each kind of OVN database becomes one text.
type printed struct {
	ctx   context.Context
	spool string
	node  *recording.Recording
}

// putTogether replaces the outputs of a node that print tables of OVN databases by one text for each
// database, and makes the texts about its machine.
func putTogether(ctx context.Context, spool string, node *recording.Recording) error {
	p := printed{ctx, spool, node}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if err := p.addDatabase(kind); err != nil {
			return err
		}
	}
	if err := p.addParts(); err != nil {
		return err
	}
	node.All = slices.DeleteFunc(node.All, func(output recording.Output) bool {
		command, _ := recording.Find(output.Command)
		return command.Prints != ""
	})
	return makeHostTexts(ctx, spool, node)
}

// addDatabase adds the database of a kind, if the node has no file of it, and if its outputs hold the
// essential tables, or the node has the end of its file.
func (p printed) addDatabase(kind workdir.Kind) error {
	if p.hasFile(kind) {
		return nil
	}
	parts, failed := p.parts(kind)
	tail, hasTail := p.takeTail(kind)
	if len(parts) == 0 && !hasTail {
		return nil
	}
	spooled, lost, err := p.join(kind, parts)
	if archive.CannotWrite(err) || p.ctx.Err() != nil {
		return cmp.Or(p.ctx.Err(), err)
	}
	db := recording.Database{File: spooled, Printed: kind}
	if len(parts) > 0 {
		db.Origin = originOfParts(parts)
	}
	var content *file.Content
	if err == nil {
		content, err = db.Read(p.ctx)
	}
	if err != nil {
		p.node.LoseDatabase(kind, fmt.Sprintf("%s: %v", db.Origin, err))
		return nil
	}
	if !hasTail {
		lost = append(lost, missingRows(p.ctx, spooled.Spooled)...)
	}
	whole := slices.ContainsFunc(essential(kind), func(table string) bool { return len(content.Rows(table)) > 0 })
	switch {
	case whole && hasTail:
		db.Remarks = append(db.Remarks, tail.Origin+" is not used, since its beginning is missing")
	case hasTail:
		db.Origin, db.Tail = strings.TrimPrefix(db.Origin+", "+tail.Origin, ", "), tail.File
		p.node.LoseDatabase(kind, tail.Origin+": the beginning of the database is missing, and what it holds was not printed: only rows in the rest of the file are known")
	case !whole:
		p.node.Remarks = append(p.node.Remarks, fmt.Sprintf("%s: not used, since no database can be made without the rows of %s", db.Origin, strings.Join(essential(kind), " or ")))
		return nil
	}
	p.node.Databases = append(p.node.Databases, db)
	for _, loss := range append(lost, failed...) {
		p.node.LoseDatabase(kind, loss)
	}
	return nil
}

// missingRows returns a sentence for each column of printed tables that refers to rows which were not printed.
func missingRows(ctx context.Context, path string) (list []string) {
	tables, err := file.PrintedTables(ctx, path)
	if err != nil {
		return nil
	}
	printed := map[string]bool{}
	for _, records := range tables {
		for _, record := range records {
			printed[record.UUID] = true
		}
	}
	missing := map[string]int{}
	for table, records := range tables {
		for _, record := range records {
			for _, value := range record.Columns {
				if slices.Contains(harmless(), value.Column) {
					continue
				}
				for _, uuid := range ovsdb.References(value.Text) {
					if !printed[uuid] {
						missing[table+"."+value.Column]++
					}
				}
			}
		}
	}
	for _, column := range slices.Sorted(maps.Keys(missing)) {
		list = append(list, fmt.Sprintf("%s that %s refers to: not printed", phrase.Count(missing[column], "row"), column))
	}
	return list
}

// harmless are the columns that refer to rows which do not decide where a packet goes.
func harmless() []string {
	return []string{"ssl", "connections", "copp", "mirror_rules", "health_check", "bfd", "meters", "bands", "dhcpv4_options", "dhcpv6_options", "dns_records"}
}

// hasFile reports whether the node has a database file of the kind.
func (p printed) hasFile(kind workdir.Kind) bool {
	for i := range p.node.Databases {
		if p.node.Databases[i].Kind(p.ctx) == kind {
			return true
		}
	}
	return false
}

// takeTail removes the largest file of a database of the kind whose beginning is missing from the
// databases of the node, and returns it.
func (p printed) takeTail(kind workdir.Kind) (tail recording.Database, ok bool) {
	at := -1
	for i := range p.node.Databases {
		db := &p.node.Databases[i]
		info, err := db.Inspect(p.ctx)
		if errors.Is(err, file.ErrTailed) && !info.Gzip && kindOfPath(db.Origin) == kind && (at < 0 || db.Size > p.node.Databases[at].Size) {
			at = i
		}
	}
	if at < 0 {
		return tail, false
	}
	tail = p.node.Databases[at]
	p.node.Databases = slices.Delete(p.node.Databases, at, at+1)
	return tail, true
}

// join spools outputs as one text of printed tables, and returns what could not be read of them.
func (p printed) join(kind workdir.Kind, parts []recording.Output) (spooled archive.File, lost []string, err error) {
	text, writer := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		var err error
		lost, err = writeParts(writer, kind, parts)
		writer.CloseWithError(err)
	}()
	spooled, err = archive.Spool(p.ctx, p.spool, text)
	text.Close() // which ends the writer
	<-written
	return spooled, lost, err
}

// parts returns the first output of each table that is not an error message, sorted by table, and a
// sentence for each table of which there is nothing else.
func (p printed) parts(kind workdir.Kind) (parts []recording.Output, failed []string) {
	outputs := p.node.BySubject()
	for subject, list := range outputs {
		command, _ := recording.Find(subject.Command)
		if command.Prints != kind {
			continue
		}
		i := slices.IndexFunc(list, func(output recording.Output) bool { return !isErrorMessage(output.Spooled) })
		if i < 0 {
			failed = append(failed, list[0].Origin+": an error message")
			continue
		}
		parts = append(parts, list[i])
	}
	slices.SortFunc(parts, func(a, b recording.Output) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Origin, b.Origin))
	})
	slices.Sort(failed)
	return parts, failed
}

// isErrorMessage reports whether the file of an output has text and neither a row nor the head of a
// list of logical flows near its beginning, or can't be read.
func isErrorMessage(path string) bool {
	in, err := os.Open(path)
	if err != nil {
		return true
	}
	defer in.Close()
	start, err := io.ReadAll(io.LimitReader(in, 64<<10))
	return err != nil || len(bytes.TrimSpace(start)) > 0 && !bytes.Contains(start, []byte("_uuid")) && !bytes.Contains(start, []byte("Datapath: "))
}

// originOfParts names the outputs of which a database is put together.
func originOfParts(parts []recording.Output) string {
	if len(parts) == 1 {
		return parts[0].Origin
	}
	return fmt.Sprintf("%s and %s of its kind", parts[0].Origin, phrase.Count(len(parts)-1, "more output"))
}

// writeParts writes outputs as one text of printed tables, and returns what could not be read of them.
func writeParts(out io.Writer, kind workdir.Kind, parts []recording.Output) (lost []string, err error) {
	for _, part := range parts {
		if part.Truncated {
			lost = append(lost, part.Origin+": cut by sos: only its end was collected")
		}
		unread, err := writePart(out, kind, part)
		if err != nil {
			return lost, err
		}
		if unread > 0 {
			lost = append(lost, fmt.Sprintf("%s: %s that can't be read", part.Origin, phrase.Count(unread, "line")))
		}
	}
	return lost, nil
}

// writePart writes one output under the name of its table. It returns the number of lines that it
// could not read.
func writePart(out io.Writer, kind workdir.Kind, part recording.Output) (lost int, err error) {
	in, err := os.Open(part.Spooled)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if part.Command == recording.LogicalFlows {
		if _, err := io.WriteString(out, "Logical_Flow table\n"); err != nil {
			return 0, err
		}
		_, lost, err = ovn.LogicalFlowRows(out, in)
		return lost, err
	}
	if _, err := io.WriteString(out, workdir.TableName(kind, part.Table)+" table\n"); err != nil {
		return 0, err
	}
	return lines.Read(in, func(line []byte) error {
		_, err := out.Write(append(line, '\n'))
		return err
	})
}
