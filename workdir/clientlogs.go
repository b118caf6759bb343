package workdir

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// clientLogs is the folder of the logs of a database's clients, beside the database.
const clientLogs = "libovsdb"

// ClientLog returns the path of a log of clients of libovsdb. OVN-Kubernetes writes what it
// asks of all databases into one log; it belongs to the data of the OVN NB database.
func (d *Data) ClientLog(name string) string {
	return filepath.Join(filepath.Dir(d.Database(NB)), clientLogs, EncodeName(name))
}

// ClientLogs returns the paths of the collected logs of clients of libovsdb, the oldest
// first: the names of rotated ones hold their time, and the present one has none.
func (d *Data) ClientLogs() ([]string, error) {
	folder := filepath.Dir(d.ClientLog(""))
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			paths = append(paths, filepath.Join(folder, entry.Name()))
		}
	}
	rotated := func(path string) string {
		_, at, found := strings.Cut(filepath.Base(path), "-")
		if !found {
			return "~" // after all digits
		}
		return at
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(rotated(a), rotated(b)) })
	return paths, nil
}
