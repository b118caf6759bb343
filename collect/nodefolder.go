package collect

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// nodeFolders are the folders of a source that hold one node's files each, with the node's name,
// "" as long as nothing but the folder names it.
type nodeFolders map[string]string

// findNodeFolders returns the folders in which the paths of two files part that hold the
// output of the same command about the same bridge: a node has only one such output.
func findNodeFolders(files map[string]identity) nodeFolders {
	folders := nodeFolders{}
	first := map[identity]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		id := files[name]
		if id.node != "" || id.kind != dumpFile && id.kind != recordedFile {
			continue
		}
		other, twice := first[id]
		if !twice {
			first[id] = name
			continue
		}
		if a, b, ok := partingFolders(other, name); ok {
			folders[a], folders[b] = "", ""
		}
	}
	return folders
}

// partingFolders returns the folders in which two paths begin to differ. ok is false if they
// differ in the name of a file.
func partingFolders(a, b string) (folderOfA, folderOfB string, ok bool) {
	partsA, partsB := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(partsA), len(partsB)) - 1 {
		if partsA[i] != partsB[i] {
			return path.Join(partsA[:i+1]...), path.Join(partsB[:i+1]...), true
		}
	}
	return "", "", false
}

// of returns the outermost folder of a node in which a file is, "" if it is in none.
func (f nodeFolders) of(name string) string {
	folder := ""
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, ok := f[dir]; ok {
			folder = dir
		}
	}
	return folder
}

// name notes the name of the node whose folder a file is in.
func (f nodeFolders) name(file, host string) {
	if folder := f.of(file); folder != "" {
		f[folder] = cmp.Or(f[folder], host)
	}
}

// hostOfFolder returns the node whose folder a file is in: the one that a database in the folder
// names, or that of the pod that the folder is named for, or else the folder's name. It is "" for
// a file that is in no node's folder.
func (l *looseReader) hostOfFolder(name string) string {
	folder := l.folders.of(name)
	if folder == "" {
		return ""
	}
	return cmp.Or(l.folders[folder], l.nodeOfPod[path.Base(folder)], path.Base(folder))
}
