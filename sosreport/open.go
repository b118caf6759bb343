package sosreport

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"ovs-offline/internal/archive"
)

// ErrNotArchive is wrapped when a file is neither a tar nor a compressed tar.
var ErrNotArchive = errors.New("not a sos report")

// ErrEmpty is wrapped when a source holds nothing of a sos report.
var ErrEmpty = errors.New("holds nothing of a sos report")

// Progress is told how much of the source was read, in bytes, of how many;
// total is 0 where it is not known.
type Progress = archive.Progress

// Open reads the one report at source and keeps what it knows a meaning for in
// spool, a folder of the caller's. An archive is read once from its beginning
// to its end. The error wraps ErrNotArchive or ErrEmpty where that is the
// reason; a truncated archive is an error, since nobody can tell what it lacks.
func Open(ctx context.Context, source, spool string, limits archive.Limits, progress Progress) (*Report, error) {
	tree, err := archive.Read(ctx, source, spool, Wanted, limits, progress)
	var other *archive.NotArchiveError
	if errors.As(err, &other) {
		return nil, fmt.Errorf("%s is %w: %s", source, ErrNotArchive, other.Reason)
	}
	if err != nil {
		return nil, err
	}
	if !tree.Archive && !tree.Folder {
		return nil, fmt.Errorf("%s is %w: its first bytes are of no tar, xz, gzip, bzip2 or zstd file", source, ErrNotArchive)
	}
	reports, err := find(ctx, tree, tops(tree, true), limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	switch len(reports) {
	case 0:
		return nil, fmt.Errorf("%s %w (no sos_commands/openvswitch, no databases of OVS or OVN)%s", source, ErrEmpty, alsoLost(tree))
	case 1:
		reports[0].BytesRead = tree.Bytes
		return reports[0], nil
	}
	names := make([]string, len(reports))
	for i, r := range reports {
		names[i] = r.Top
	}
	return nil, fmt.Errorf("%s holds several reports (%s): give one of them, or take all with collect", source, strings.Join(names, ", "))
}

func alsoLost(tree *archive.Tree) string {
	if len(tree.Lost) == 0 {
		return ""
	}
	return ". " + tree.Lost[0].String()
}

// Find gives a meaning to every report that a tree holds, in the order of their
// names. The error wraps archive.ErrLimit where those are too many.
func Find(ctx context.Context, tree *archive.Tree, limits archive.Limits) ([]*Report, error) {
	return find(ctx, tree, tops(tree, false), limits)
}

func find(ctx context.Context, tree *archive.Tree, tops []string, limits archive.Limits) ([]*Report, error) {
	if err := limits.Nodes(len(tops)); err != nil {
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
		if top, rel, ok := split(loss.Path, all); ok && wanted(rel) {
			all[top].Lost = append(all[top].Lost, rel+": "+loss.Reason)
		}
	}
	var reports []*Report
	for _, top := range tops {
		if err := newContents(tree, top, names[top]).index(ctx, all[top]); err != nil {
			return nil, err
		}
		reports = append(reports, all[top])
	}
	return reports, ctx.Err()
}

// split finds the report in which a name stands.
func split(name string, reports map[string]*Report) (top, rel string, ok bool) {
	for top := name; top != ""; {
		top = dir(top)
		if reports[top] != nil {
			return top, strings.TrimPrefix(strings.TrimPrefix(name, top), "/"), true
		}
	}
	return "", "", false
}

// Wanted tells what of a source has a meaning in a sos report, wherever in it
// the report stands: by its name, and a database also by its content, since
// some deployments keep theirs where sos doesn't look for it.
func Wanted(name string, start []byte) bool {
	if strings.HasPrefix(string(start), "OVSDB ") {
		return true
	}
	for {
		if wanted(name) {
			return true
		}
		_, below, more := strings.Cut(name, "/")
		if !more {
			return false
		}
		name = below
	}
}

// tops are the top folders of the reports in a tree, "" for the tree itself.
// One within another report is not taken. A version.txt alone makes one only
// where nothing else does, and so does a hostname where it is sure that the
// source should be a report.
func tops(tree *archive.Tree, meant bool) []string {
	sure, weak := map[string]bool{}, map[string]bool{}
	for _, name := range tree.Names() {
		if top, ok := topOf(name); ok {
			sure[top] = true
		}
	}
	// A database's place tells a report only where nothing else does: it is
	// searched for after all that is surer.
	for _, name := range tree.Names() {
		if top, ok := databaseTop(name); ok && !within(top, sure) && !sure[top] {
			weak[top] = true
		}
	}
	for top := range weak {
		sure[top] = true
	}
	if len(sure) == 0 {
		for _, name := range tree.Names() {
			rel := path.Base(name)
			if rel == "version.txt" && (meant || strings.HasPrefix(start(tree, name), "sosreport:")) ||
				meant && strings.HasSuffix("/"+name, "/etc/hostname") {
				sure[strings.TrimSuffix(strings.TrimSuffix(dir(name), "etc"), "/")] = true
			}
		}
	}
	var list []string
	for top := range sure {
		if !within(top, sure) {
			list = append(list, top)
		}
	}
	sort.Strings(list)
	return list
}

// topOf cuts a name before the first folder that only a report has.
func topOf(name string) (top string, ok bool) {
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] {
		switch part {
		case "sos_commands", "sos_strings", "sos_containers":
			return strings.Join(parts[:i], "/"), true
		}
	}
	return "", false
}

// databaseTop cuts a name before the place where a node has its databases.
func databaseTop(name string) (top string, ok bool) {
	for i := 0; i >= 0 && i < len(name); {
		if isDatabasePlace(name[i:]) {
			return strings.TrimSuffix(name[:i], "/"), true
		}
		next := strings.IndexByte(name[i:], '/')
		if next < 0 {
			return "", false
		}
		i += next + 1
	}
	return "", false
}

// within tells whether top is in the folder of another of the tops.
func within(top string, tops map[string]bool) bool {
	for top != "" {
		top = dir(top)
		if tops[top] {
			return true
		}
	}
	return false
}

// dir is the folder of a clean name, "" for the top.
func dir(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// places are the files and folders of a report that have a meaning here,
// relative to its top.
func places() []string {
	return []string{
		"version.txt", "hostname", "etc/hostname", "installed-rpms", "sos_reports/manifest.json",
		"sos_commands/host/hostname", "sos_commands/rpm/package-data", "sos_commands/dpkg/dpkg_-l",
		"sos_commands/openvswitch/", "sos_commands/ovn_host/", "sos_commands/ovn_central/",
		"sos_strings/openvswitch/", "sos_strings/ovn_host/", "sos_strings/ovn_central/",
	}
}

// databaseFolders is where databases stand, by deployment; sos puts host/
// before them for some that it cut in a container with the host's root mounted.
func databaseFolders() []string {
	return []string{
		"etc/openvswitch/", "var/lib/openvswitch/", "usr/local/etc/openvswitch/", "etc/ovn/",
		"var/lib/ovn/", "var/lib/ovn-ic/", "var/snap/microovn/common/data/",
	}
}

// wanted tells whether a name below a report's top has a meaning.
func wanted(rel string) bool {
	for _, p := range places() {
		if rel == p || strings.HasSuffix(p, "/") && strings.HasPrefix(rel, p) {
			return true
		}
	}
	return isDatabasePlace(rel)
}

func isDatabasePlace(rel string) bool {
	rel = strings.TrimPrefix(rel, "host/")
	for _, folder := range databaseFolders() {
		if strings.HasPrefix(rel, folder) && strings.HasSuffix(rel, ".db") && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
