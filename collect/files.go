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
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/sosreport"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Files is the source of any files and folders: sos reports, must-gathers,
// archives of such, databases, the output of ovs-save, and loose dumps. The type of
// each file is detected by its content.
type Files struct {
	Paths    []string
	Limits   archive.Limits // of each path; the zero value stands for archive.Default
	Progress archive.Progress
	// Earlier takes the first output of a command that a text has several times, and not the last.
	Earlier bool
}

// Kinds returns nothing: the files may hold anything.
func (s Files) Kinds() []workdir.Kind { return nil }

// Read implements Source. A path that cannot be read is added to Found.Lost if
// another path can.
func (s Files) Read(ctx context.Context, spool string) (*Found, error) {
	reader := &filesReader{Files: s, ctx: ctx, spool: spool, found: &Found{}, taken: map[string]recording.Moment{}, members: map[string]raft.Status{}}
	reader.loose = looseNodes{named: map[string][]*recording.Recording{}, saved: map[string]bool{}}
	var errs []error
	for _, path := range s.Paths {
		err := reader.add(path)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if archive.CannotWrite(err) {
			return nil, err
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == len(s.Paths) {
		return nil, errors.Join(errs...)
	}
	for _, err := range errs {
		reader.found.Lost = append(reader.found.Lost, err.Error())
	}
	if err := reader.assemble(); err != nil {
		return nil, err
	}
	return reader.found, nil
}

// filesReader holds what was recognised so far.
type filesReader struct {
	Files
	ctx     context.Context
	spool   string
	found   *Found
	reports []*recording.Recording
	loose   looseNodes
	owners  map[string]owner            // of databases, by spooled file
	taken   map[string]recording.Moment // of must-gathers, by the name of the source
	members map[string]raft.Status      // by the UUID of the server
	unread  []string                    // outputs and texts that nothing uses
	seen    []string                    // what else was seen in tickets that can't be used
}

// add reads one path and recognises its content.
func (r *filesReader) add(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	identities := map[string]identity{}
	var others []string
	tree, err := archive.Read(r.ctx, path, r.spool, wantedBy(identities, &others), r.Limits, r.Progress)
	if _, ok := errors.AsType[*archive.NotArchiveError](err); ok {
		return r.notArchive(path, err)
	}
	if err != nil {
		return err
	}
	input, before := Input{Path: path}, len(r.found.Lost)
	reports, err := sosreport.Find(r.ctx, tree, r.Limits)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	states := r.addStatuses(abs, tree, identities)
	tops := map[string]bool{}
	for _, report := range reports {
		tops[report.Top] = true
		report.At(partName(abs, report.Top))
		for i := range report.Databases {
			_, _ = report.Databases[i].Inspect(r.ctx) // the database keeps the result
		}
		report.Unused = slices.DeleteFunc(report.Unused, func(name string) bool { return states[strings.TrimPrefix(report.Top+"/"+name, "/")] })
		r.correctHost(&report.Recording)
		r.reports = append(r.reports, &report.Recording)
		input.Kinds = append(input.Kinds, fmt.Sprintf("sos report of %s (%s)", cmp.Or(report.Host, "an unnamed node"), report.Source.Tool))
	}
	maps.DeleteFunc(identities, func(name string, _ identity) bool {
		_, kept := tree.Files[name]
		return !kept || isBelow(name, tops)
	})
	for _, name := range others {
		if !isBelow(name, tops) {
			r.found.Unused = append(r.found.Unused, name)
		}
	}
	for top, files := range byMustGather(identities) {
		kinds, err := r.addLoose(tree, partName(abs, top), files)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		input.Kinds = append(input.Kinds, kinds...)
	}
	for _, loss := range tree.Lost {
		if !isBelow(loss.Path, tops) {
			r.found.Lost = append(r.found.Lost, fmt.Sprintf("%s: %s", path, loss))
		}
	}
	if len(input.Kinds) == 0 {
		if err := r.tailedDatabase(path); err != nil {
			return err
		}
		lost := ""
		if len(r.found.Lost) > before {
			lost = "; could not be read: " + r.found.Lost[before]
		}
		if len(others) > 0 {
			lost += "; nothing uses " + phrase.FirstNames(baseNames(others))
		}
		if len(r.unread) > 0 {
			lost += "; nothing uses " + phrase.FirstNames(r.unread)
		}
		if len(r.seen) > 0 {
			return onlySeen(path, r.seen, lost)
		}
		return fmt.Errorf("%w: %s holds nothing of Open vSwitch or OVN (no sos report, must-gather, database, output of ovs-save, or dump)%s", ErrNothing, path, lost)
	}
	r.found.Inputs = append(r.found.Inputs, input)
	return nil
}

// notArchive returns the error of a file that holds nothing known.
func (r *filesReader) notArchive(path string, err error) error {
	if err := r.tailedDatabase(path); err != nil {
		return err
	}
	if seen := seenIn(path); len(seen) > 0 {
		return onlySeen(path, seen, "")
	}
	return fmt.Errorf("%w: %s holds nothing of Open vSwitch or OVN (%w)", ErrNothing, path, err)
}

// onlySeen returns the error of a source that has outputs of which nothing can be made.
func onlySeen(path string, seen []string, lost string) error {
	return fmt.Errorf("%w: of the outputs in %s, no database and no switch can be made: %s%s", ErrNothing, path, strings.Join(seen[:min(len(seen), 5)], "; "), lost)
}

// maxSeenBytes is how much of a file is read only to say what it is.
const maxSeenBytes = 64 << 10

// seenIn returns the outputs of Open vSwitch and OVN in a file that is not taken for a ticket.
func seenIn(path string) (list []string) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	in, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer in.Close()
	start, err := io.ReadAll(io.LimitReader(in, maxSeenBytes))
	if err != nil || bytes.IndexByte(start, 0) >= 0 {
		return nil
	}
	for _, seen := range ticket.Read(string(start)).Seen {
		list = append(list, seen.String())
	}
	return list
}

// tailedDatabase returns an error with the remedy if a file is the end of a database whose beginning was cut off.
func (r *filesReader) tailedDatabase(path string) error {
	// A pipe was read, and cannot be read a second time.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	db := recording.Database{File: archive.File{Spooled: path}}
	if _, err := db.Inspect(r.ctx); errors.Is(err, file.ErrTailed) {
		return fmt.Errorf("%w: %s: %w", ErrNothing, path, err)
	}
	return nil
}

// isBelow reports whether a name is one of the folders or in one of them.
func isBelow(name string, folders map[string]bool) bool {
	for !folders[name] && name != "" {
		name = name[:max(0, strings.LastIndexByte(name, '/'))]
	}
	return folders[name]
}

// partName names a part of a source.
func partName(source, part string) string {
	if part == "" {
		return source
	}
	return source + ":" + part
}

// maxUnused bounds the list of outputs that nothing uses, and maxTexts the texts that are read to their end: a source can have a
// million files.
const (
	maxUnused = 1000
	maxTexts  = 1000
)

// wantedBy returns a function that reports whether a file of a source is kept, and that
// adds the file's identity to identities. It adds the names of other files that are named for a
// command of Open vSwitch or OVN to others.
func wantedBy(identities map[string]identity, others *[]string) archive.Wanted {
	texts := 0
	return func(name string, start []byte) archive.Keep {
		id := identify(name, start)
		if id.whole {
			texts++
			id.whole = texts <= maxTexts
		}
		keep := archive.Take
		if id.kind == unknownFile || id.isAside() {
			keep = sosreport.Wanted(name, start)
		}
		if id.whole {
			keep = max(keep, archive.Take)
		}
		switch {
		case id.isAside():
			keep = max(keep, archive.TakeAside)
			identities[name] = id
		case keep != archive.Leave:
			identities[name] = id
		case recording.IsOutputName(name) && len(*others) < maxUnused:
			*others = append(*others, name)
		}
		return keep
	}
}
