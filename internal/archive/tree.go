package archive

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Tree describes the files and links that were kept of a source. Paths are relative to
// the source; an archive inside it is a folder of the archive's name.
type Tree struct {
	Source  string // the path that was given
	Archive bool   // the source is an archive
	Folder  bool   // the source is a folder
	Files   map[string]File
	Links   map[string]string // a link's path to its target, as written
	Lost    []Loss            // parts that could not be read
	Bytes   int64             // read of the source, each byte once
}

// Loss is a part of a source that could not be read.
type Loss struct {
	Path   string
	Reason string
}

func (l Loss) String() string { return l.Path + ": " + l.Reason }

func (t *Tree) drop(name string) {
	if old, exists := t.Files[name]; exists {
		os.Remove(old.Spooled)
		delete(t.Files, name)
	}
	delete(t.Links, name)
}

// Resolve follows links from name to a file that was kept, without leaving the
// folder root of the tree, which is also where absolute targets begin. The target may
// precede or follow its link in the source.
func (t *Tree) Resolve(root, name string) (real string, file File, ok bool) {
	for range 40 { // as many as Linux follows
		if file, ok := t.Files[path.Join(root, name)]; ok {
			return name, file, true
		}
		target, ok := t.Links[path.Join(root, name)]
		if !ok {
			return name, File{}, false
		}
		if path.IsAbs(target) {
			name = path.Clean(target)[1:]
		} else {
			name = path.Join(path.Dir(name), target)
		}
		if !filepath.IsLocal(name) {
			return name, File{}, false
		}
	}
	return name, File{}, false
}

// Names lists the kept files and links, sorted.
func (t *Tree) Names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(t.Files)), maps.Keys(t.Links))
	slices.Sort(names)
	return names
}

const (
	maxName   = 4096 // bytes of a path: PATH_MAX of Linux
	maxFolder = 255  // folders above a file
)

// local cleans a name in a source to a path below it. ok is false for a name that
// leads out of the source or is too long for a file.
func local(name string) (clean string, ok bool) {
	if len(name) > maxName || strings.Count(name, "/") > maxFolder {
		return "", false
	}
	clean = path.Clean(strings.TrimPrefix(name, "./"))
	return clean, filepath.IsLocal(clean)
}
