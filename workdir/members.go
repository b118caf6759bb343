package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// members is the folder of the files of the other members of a clustered database, beside that which
// a replica serves.
const members = "members"

// The endings of the files in it.
const (
	memberFile   = ".db"
	memberStatus = ".status"
)

// Member returns the path of the file of another member of a clustered database. name is that of its
// host or pod, or the UUID of its server.
func (d *Data) Member(kind Kind, name string) string {
	return filepath.Join(filepath.Dir(d.Database(kind)), members, EncodeName(name)+memberFile)
}

// MemberStatus returns the path of what the server of a member printed of itself (cluster/status).
func (d *Data) MemberStatus(kind Kind, name string) string {
	return strings.TrimSuffix(d.Member(kind, name), memberFile) + memberStatus
}

// Members returns the paths of the files of the other members of a database, and of what servers
// printed, sorted.
func (d *Data) Members(kind Kind) (files, statuses []string, err error) {
	folder := filepath.Dir(d.Member(kind, ""))
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch ending := filepath.Ext(path); {
		case !entry.Type().IsRegular():
		case ending == memberFile:
			files = append(files, path)
		case ending == memberStatus:
			statuses = append(statuses, path)
		}
	}
	slices.Sort(files)
	slices.Sort(statuses)
	return files, statuses, err
}
