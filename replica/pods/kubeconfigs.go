package pods

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/workdir"
)

// Which kubeconfig a start used is kept in the user's own state folder, not in the workdir:
// a kubeconfig names programs that clients run, and a workdir may be from another person.

// kept is the document about one start.
type kept struct {
	Kubeconfig string    `json:"kubeconfig"` // paths of files, as in KUBECONFIG
	Ends       time.Time `json:"ends"`
}

// keptFolder returns the folder of the documents: ovs-offline/sets in $XDG_STATE_HOME, which
// is ~/.local/state by default.
func keptFolder() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification ignores a relative path
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("the folder of kubeconfigs in use: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "ovs-offline", "sets"), nil
}

// keptAfter is how long the document about a start is kept after the start's end: pods whose
// kubelet has ended are in the cluster until it is back.
const keptAfter = 24 * time.Hour

// keep writes the document about a start, and removes the documents of starts that ended long ago.
func keep(set string, k kept) error {
	folder, err := keptFolder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var old kept
		path := filepath.Join(folder, entry.Name())
		if err := workdir.ReadJSON(path, &old); err == nil && time.Now().After(old.Ends.Add(keptAfter)) {
			os.Remove(path)
		}
	}
	return workdir.WriteJSON(filepath.Join(folder, set), k)
}

// kubeconfigOf returns the paths of the kubeconfig that a start used; "" if that is not
// known here, as for a workdir from another machine.
func kubeconfigOf(set string) (string, error) {
	folder, err := keptFolder()
	if err != nil || !isSet(set) {
		return "", nil
	}
	var kept kept
	err = workdir.ReadJSON(filepath.Join(folder, set), &kept)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return kept.Kubeconfig, err
}

// forget removes the document about a start.
func forget(set string) {
	if folder, err := keptFolder(); err == nil && isSet(set) {
		os.Remove(filepath.Join(folder, set))
	}
}
