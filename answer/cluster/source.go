package cluster

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// OfNodes examines the databases of the nodes of a case, with the statuses and logs that were collected of them.
func OfNodes(ctx context.Context, selected *snapshot.Snapshot) (*Report, error) {
	var dirs []*workdir.Dir
	for _, node := range selected.Nodes() {
		wd, err := node.Workdir()
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, wd)
	}
	return OfDirs(ctx, dirs...)
}

// OfDirs examines the databases of workdirs, as OfNodes does.
func OfDirs(ctx context.Context, dirs ...*workdir.Dir) (*Report, error) {
	members, err := Files(dirs...)
	if err != nil {
		return nil, err
	}
	logs, err := Logs(dirs...)
	if err != nil {
		return nil, err
	}
	report, err := Examine(ctx, members)
	if err != nil {
		return nil, err
	}
	return report, report.AddLogs(ctx, logs)
}

// Files returns the files of members of clustered OVN databases that workdirs hold, each content once,
// with what their servers printed.
func Files(dirs ...*workdir.Dir) (all []Member, err error) {
	seen := map[string]bool{} // by the digest
	for _, wd := range dirs {
		manifest, err := wd.Manifest()
		if err != nil {
			return nil, err
		}
		for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
			found, err := filesOf(wd, manifest, kind, seen)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// filesOf returns the files of the members of one database in a workdir.
func filesOf(wd *workdir.Dir, manifest *workdir.Manifest, kind workdir.Kind, seen map[string]bool) (found []Member, err error) {
	others, statuses, err := wd.Members(kind)
	if err != nil {
		return nil, err
	}
	for _, file := range append([]string{wd.Database(kind)}, others...) {
		if info, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // a link leads to the database of another node of the set
		}
		member := Member{Path: file, open: wd.OpenDatabase}
		member.describe(wd, manifest.Collection(kind), wd.Relative(file), seen)
		if member.Path != "" {
			found = append(found, member)
		}
	}
	own := map[workdir.Kind]string{workdir.NB: workdir.HostStatusNB, workdir.SB: workdir.HostStatusSB}[kind]
	for _, file := range append(statuses, wd.HostRecorded(own)) {
		text, _, err := wd.CollectedText(file)
		if err != nil {
			return nil, err
		}
		if text != "" {
			found = append(found, StatusesIn(nameOfText(wd, file, own), text)...)
		}
	}
	return found, nil
}

// nameOfText names an output in a workdir: one of the workdir's own server by the host.
func nameOfText(wd *workdir.Dir, file, own string) string {
	if host := wd.RecordedHost(); host != "" && file == wd.HostRecorded(own) {
		return host + ": cluster/status"
	}
	return wd.Relative(file)
}

// StatusesIn returns a member for each output of cluster/status in a text.
func StatusesIn(name, text string) (all []Member) {
	for _, printed := range raft.Split(text) {
		all = append(all, Member{Name: name, Status: printed.Text})
	}
	return all
}

// describe names a file by its origin. The path of a copy of a file that was seen becomes empty.
func (m *Member) describe(wd *workdir.Dir, collection *workdir.Collection, relative string, seen map[string]bool) {
	m.Name = m.Path
	if collection == nil {
		return
	}
	for _, file := range collection.Files {
		if file.Path != relative {
			continue
		}
		host := collection.Host
		if name, ok := workdir.DecodeName(strings.TrimSuffix(path.Base(relative), ".db")); ok && path.Base(path.Dir(relative)) == "members" {
			host = name
		}
		m.Name, m.Place, m.Taken = nameOf(file.Origin, host), PlaceOf(file.Origin), file.Recorded
		if m.Taken.IsZero() && !collection.RecordedAbout {
			m.Taken = collection.Recorded
		}
		if seen[file.SHA256] && file.SHA256 != "" {
			m.Path = ""
		}
		seen[file.SHA256] = true
	}
}

// nameOf names a file by its host and its path there, or by its path in its source.
func nameOf(origin, host string) string {
	origin = inSource(origin)
	if place := PlaceOf(origin); place != "" && host != "" {
		return host + ":" + place
	}
	return origin
}

// inSource returns the path of a file in its source: an origin has the source before it where that is
// another one than the node's.
func inSource(origin string) string { return origin[strings.LastIndex(": "+origin, ": "):] }

// usualPlace matches the part of a path that is that of a database on its server.
var usualPlace = lazyregexp.New(`/(?:etc|var/lib|run|var/snap/[^/]+/common)/(?:origin/)?(?:[a-z-]*ovn[a-z-]*|openvswitch)/(?:[a-z]+/)*[^/]+\.db$`)

// PlaceOf returns the path that a collected file had on its server, "" if its path does not tell.
func PlaceOf(origin string) string {
	return usualPlace.FindString("/" + strings.TrimPrefix(inSource(origin), "/"))
}

// Given returns the members whose files, or outputs of cluster/status, a user names.
func Given(paths []string) (all []Member, err error) {
	for _, name := range paths {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(name); err != nil {
			return nil, err
		} else if info.Size() < maxStatus {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if found := StatusesIn(name, string(text)); len(found) > 0 && !bytes.HasPrefix(text, []byte("OVSDB ")) {
				all = append(all, found...)
				continue
			}
		}
		all = append(all, Member{Name: name, Path: name, Place: PlaceOf(absolute)})
	}
	return all, nil
}

// maxStatus bounds a file with the output of cluster/status, in bytes.
const maxStatus = 64 << 10
