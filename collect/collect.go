// Package collect holds what all collectors share: their options, the refusal
// to replace what is there, and how a database file is known and put in place.
// Each source has a collector in a folder of its own; all of them fill a
// workdir and know nothing of daemons.
package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// ErrOccupied is wrapped when the workdir holds data of the same kind already.
var ErrOccupied = errors.New("the workdir holds data already")

// ErrNothing is wrapped when a source holds nothing of what was asked for.
var ErrNothing = errors.New("nothing to collect")

// Options are common to all collectors.
type Options struct {
	Force    bool                    // replace what is there
	Progress func(read, total int64) // of the source's bytes; nil for none
	Limits   archive.Limits          // of each source; the zero value stands for archive.Default
}

// Refuse returns an error that tells what is there if the workdir holds data
// of the kinds, unless force is set.
func Refuse(wd *workdir.Dir, force, databaseOnly bool, kinds ...workdir.Kind) error {
	there, err := wd.Occupied(databaseOnly, kinds...)
	if err != nil || len(there) == 0 || force {
		return err
	}
	return fmt.Errorf("%w: %s: %s; --force replaces it, -w DIR keeps both", ErrOccupied, wd.Path(), strings.Join(there, "; "))
}

// KindOf maps a database's name to the kind that it is here, "" for others.
func KindOf(name string) workdir.Kind {
	return ovsdb.KindOf(name)
}

// Inspect tells what a database file is.
func Inspect(ctx context.Context, path string) (file.Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return file.Info{}, err
	}
	defer f.Close()
	return file.Inspect(ctx, f)
}

// DatabaseRemarks are what a person should know of a database that was collected.
func DatabaseRemarks(info file.Info) []string {
	var remarks []string
	if info.Form == file.FormClustered {
		remarks = append(remarks, "a cluster member's file: it is converted for the replica")
	}
	if info.Damaged > 0 {
		remarks = append(remarks, fmt.Sprintf("%d damaged records, mended for the replica where that can be: %s", info.Damaged, info.Damage[0]))
	}
	return remarks
}
