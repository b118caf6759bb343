package collect

import (
	"fmt"
	"path/filepath"

	"ovs-offline/workdir"
)

// Place returns the path of the workdir into which a node is collected: one below the folder
// for each of several nodes, or for one more of a set, and else the folder itself. The error
// wraps ErrOccupied if several nodes would go below the workdir of a node, where no command
// would find them.
func Place(folder, node string, several bool) (string, error) {
	wd, err := workdir.Find(folder)
	if err != nil {
		return "", err
	}
	below, err := workdir.Below(folder)
	if err != nil {
		return "", fmt.Errorf("workdir %s: %w", folder, err)
	}
	switch {
	case wd.Used() && several:
		return "", fmt.Errorf("%w: %s holds one node; several nodes take a folder of their own: choose another with -w, or one of them with --node", ErrOccupied, folder)
	case wd.Used(), !several && len(below) == 0:
		return folder, nil
	}
	return filepath.Join(folder, workdir.EncodeName(node)), nil
}
