package workdir

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// NodesFolder returns the folder whose workdirs are the nodes that d stands for: the folder of the
// synthesised switches of several chassis in a workdir, or else d itself.
func (d *Dir) NodesFolder() string {
	if d.Used() {
		return d.Chassis()
	}
	return d.Path()
}

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
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && isWorkdir(path) {
			found = append(found, path)
		}
	}
	return found, nil
}

// IsNodeName reports whether a text can be the name of a workdir in a folder of several:
// of one that Below returns, and that commands can use.
func IsNodeName(name string) bool {
	unusable := strings.ContainsFunc(name, func(char rune) bool { return char < ' ' || char == 0x7f || strings.ContainsRune("/,:", char) })
	return name != "" && len(name) <= 255 && !strings.HasPrefix(name, ".") && !unusable
}

// isWorkdir reports whether a folder holds what a collection or a start makes, or
// data that a user put there by hand.
func isWorkdir(folder string) bool {
	wd := newDir(folder)
	if wd.hasManifest() {
		return true
	}
	marks := []string{wd.ReplicaFile(), wd.RestoreFlows(), wd.HostRecorded(hostLogs)}
	for _, kind := range Kinds() {
		marks = append(marks, filepath.Dir(wd.Database(kind)))
	}
	for _, path := range marks {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// hasManifest reports whether a folder has the manifest of a workdir. Reports of sos have
// another manifest.json in the folder sos_reports, without a format.
func (d *Data) hasManifest() bool {
	path := d.manifestPath()
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	file, err := openText(path)
	if err != nil {
		return true // reading it returns the error
	}
	defer file.Close()
	in := json.NewDecoder(file)
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return true
	}
	for in.More() {
		key, err := in.Token()
		if err != nil || key == "format" {
			return true
		}
		var skipped json.RawMessage
		if err := in.Decode(&skipped); err != nil {
			return true
		}
	}
	return false
}
