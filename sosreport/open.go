package sosreport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/workdir/recording"
)

// ErrNotArchive is wrapped when a file is neither a tar nor a compressed tar.
var ErrNotArchive = errors.New("not an sos report")

// ErrEmpty is wrapped when a source holds nothing of an sos report.
var ErrEmpty = errors.New("holds nothing of an sos report")

// Open reads the one report at source once, and keeps the files that it recognises in
// the folder spool. The error wraps ErrNotArchive or ErrEmpty where that is the reason.
// A truncated archive is an error, since its missing part is unknown.
func Open(ctx context.Context, source, spool string, limits archive.Limits, progress archive.Progress) (*Report, error) {
	tree, err := archive.Read(ctx, source, spool, Wanted, limits, progress)
	if other, ok := errors.AsType[*archive.NotArchiveError](err); ok {
		return nil, fmt.Errorf("%s is %w: %s", source, ErrNotArchive, other.Reason)
	}
	if err != nil {
		return nil, err
	}
	if !tree.Archive && !tree.Folder {
		return nil, fmt.Errorf("%s is %w: it does not begin like a tar, zip, xz, gzip, bzip2 or zstd file", source, ErrNotArchive)
	}
	reports, err := find(ctx, tree, topFolders(tree, true), limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	switch len(reports) {
	case 0:
		err := fmt.Errorf("%s %w (no sos_commands/openvswitch, no databases of OVS or OVN)", source, ErrEmpty)
		if len(tree.Lost) > 0 {
			err = fmt.Errorf("%w. %s", err, tree.Lost[0])
		}
		return nil, err
	case 1:
		reports[0].BytesRead = tree.Bytes
		return reports[0], nil
	}
	names := make([]string, len(reports))
	for i, report := range reports {
		names[i] = report.Top
	}
	return nil, fmt.Errorf("%s holds several reports (%s): give one of them, or take all with collect", source, strings.Join(names, ", "))
}

// Find returns the reports in a tree, in the order of their names. The error wraps
// archive.ErrLimit where there are too many.
func Find(ctx context.Context, tree *archive.Tree, limits archive.Limits) ([]*Report, error) {
	return find(ctx, tree, topFolders(tree, false), limits)
}

func find(ctx context.Context, tree *archive.Tree, tops []string, limits archive.Limits) ([]*Report, error) {
	if err := limits.CheckNodes(len(tops)); err != nil {
		return nil, err
	}
	all := map[string]*Report{}
	for _, top := range tops {
		all[top] = &Report{Top: top}
	}
	names := map[string][]string{}
	for _, name := range tree.Names() {
		if top, rel, ok := split(name, all); ok {
			names[top] = append(names[top], rel)
		}
	}
	for _, loss := range tree.Lost {
		if top, rel, ok := split(loss.Path, all); ok && (isWanted(rel) || isAside(rel)) {
			all[top].Lost = append(all[top].Lost, rel+": "+loss.Reason)
		}
	}
	var reports []*Report
	for _, top := range tops {
		contents := &contents{tree: tree, top: top, list: names[top]}
		if err := contents.index(ctx, all[top]); err != nil {
			return nil, err
		}
		reports = append(reports, all[top])
	}
	return reports, ctx.Err()
}

// split returns the report that a name belongs to, by its top, and the name in it.
func split[T any](name string, reports map[string]T) (top, rel string, ok bool) {
	for top := name; top != ""; {
		top = dir(top)
		if _, ok := reports[top]; ok {
			return top, strings.TrimPrefix(strings.TrimPrefix(name, top), "/"), true
		}
	}
	return "", "", false
}

// Wanted reports whether a file of a source may be used as part of an sos report. It
// decides by the file's name, in any folder, and for databases also by the content,
// because some deployments keep databases in folders that sos does not know. Files about the machine
// are kept aside.
func Wanted(name string, start []byte) archive.Keep {
	if strings.HasPrefix(string(start), "OVSDB ") {
		return archive.Take
	}
	if _, isLog := recording.LogOf(name); isLog {
		return archive.TakeAside
	}
	if _, ok := recording.HostTextOf(name, start); ok {
		return archive.TakeAside
	}
	aside := false
	for rel, more := name, true; more; _, rel, more = strings.Cut(rel, "/") {
		if isWanted(rel) {
			return archive.Take
		}
		aside = aside || isMachineOutput(rel)
	}
	if aside {
		return archive.TakeAside
	}
	return archive.Leave
}
