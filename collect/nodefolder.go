package collect

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// nodeFolders knows the folders of a source that hold one node's files each.
type nodeFolders struct {
	hosts    map[string]string // the name of each folder's node, "" if no database in it gives one
	switches map[string]int    // the number of OVS databases in a folder itself
}

// findNodeFolders returns the folders in which the paths of two files begin to differ that hold
// the output of the same command about the same bridge, or the same log: a node has only one such file.
func findNodeFolders(files map[string]identity) nodeFolders {
	folders := nodeFolders{map[string]string{}, map[string]int{}}
	first := map[identity]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		id := files[name]
		if id.node != "" || id.log.Pod != "" || id.kind != dumpFile && id.kind != recordedFile && id.kind != logFile {
			continue
		}
		other, twice := first[id]
		if !twice {
			first[id] = name
			continue
		}
		if a, b, ok := partingFolders(other, name); ok {
			folders.hosts[a], folders.hosts[b] = "", ""
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
		if _, ok := f.hosts[dir]; ok {
			folder = dir
		}
	}
	return folder
}

// addSwitch notes an OVS database, and the node that it names.
func (f nodeFolders) addSwitch(name, host string) {
	f.switches[path.Dir(name)]++
	if folder := f.of(name); folder != "" {
		f.hosts[folder] = cmp.Or(f.hosts[folder], host)
	}
}

// areOfOneNode reports whether there is one OVS database above a folder: the folders below it
// hold the outputs of one node, of several times for example.
func (f nodeFolders) areOfOneNode(folder string) bool {
	above := 0
	for folder != "." && folder != "/" {
		folder = path.Dir(folder)
		above += f.switches[folder]
	}
	return above == 1
}

// hostOfFolder returns the node whose folder a file is in: the one that a database in the folder
// names, or that of the pod that the folder is named for, or else the folder's name. It is "" for
// a file that is in no node's folder.
func (l *looseReader) hostOfFolder(name string) string {
	folder := l.folders.of(name)
	if folder == "" || l.folders.areOfOneNode(folder) {
		return ""
	}
	return cmp.Or(l.folders.hosts[folder], l.nodeOfPod[path.Base(folder)], path.Base(folder))
}
