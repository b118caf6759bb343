package workdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Below returns the paths of the workdirs directly below a folder, in the order of
// their names: a collection of several nodes makes one for each node. Links and
// hidden folders are left out. A missing folder holds no workdirs.
func Below(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && isWorkdir(path) {
			found = append(found, path)
		}
	}
	return found, nil
}

// IsNodeName reports whether a text can be the name of a workdir in a folder of several:
// of one that Below returns, and that commands can use.
func IsNodeName(name string) bool {
	unusable := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("/,:", r) })
	return name != "" && len(name) <= 255 && !strings.HasPrefix(name, ".") && !unusable
}

// isWorkdir reports whether a folder holds what a collection or a start makes, or
// data that a user put there by hand.
func isWorkdir(folder string) bool {
	d := &Dir{path: folder}
	marks := []string{d.manifestPath(), d.ReplicaFile(), d.RestoreFlows()}
	for _, k := range Kinds() {
		marks = append(marks, filepath.Dir(d.Database(k)))
	}
	for _, path := range marks {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}
