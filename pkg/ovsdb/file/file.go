// Package file reads, repairs and converts OVSDB database files. A collected file may
// have been copied while a server wrote it, rewritten by `sos clean`, cut to its end,
// or written by the member of a cluster. The package identifies it, and writes a
// standalone file from it that ovsdb-server serves completely. Remarks name what could
// not be kept.
//
// A database file (ovsdb(5)) is a series of records. Each is a header line
//
//	OVSDB <JSON|CLUSTER> <length> <sha1>
//
// and length bytes of JSON. ovsdb-server stops at the first record that it cannot
// read and serves the records before it as if there were no others (ovsdb/log.c and
// ovsdb/file.c of Open vSwitch), so every record of a written file has to be right.
package file

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Form is one of the two forms of a database file.
type Form string

// The forms (ovsdb(5)).
const (
	FormStandalone Form = "standalone"
	FormClustered  Form = "clustered"
)

// Info describes a database file.
type Info struct {
	Name    string // of the database, from its schema: "Open_vSwitch"
	Version string // of the schema that the data now has
	Form    Form
	Server  string // the id of the server of a cluster that wrote the file, "" for standalone
	Cluster string // the id of the cluster, "" for standalone
	Gzip    bool   // the records were inside a gzip stream
	Records int    // header lines found, the schema's included
	Damaged int    // number of damaged places
	Damage  string // the first of them, with record and offset
	Lost    int    // number of damaged places whose content can't be read
	Loss    string // the first of them
	// Program is the version that the data states, "" for none: in an OVS database of Open
	// vSwitch ("3.1.0"), in an OVN database of ovn-northd ("23.03.1-20.27.0-70.6").
	Program string
}

// Errors for errors.Is. The errors that wrap them name the next step.
var (
	ErrEmpty       = errors.New("empty file")
	ErrNotDatabase = errors.New("not an OVSDB database")
	ErrTailed      = errors.New("the beginning of the database is missing")
	ErrJoinOnly    = errors.New("cluster member that never joined: it holds no data")
	ErrSchema      = errors.New("unreadable schema record")
)

// Inspect reads a database file to its end, through gzip, and checks the length
// and sum of each record. It holds no more than the longest damaged record in
// memory. For a file that cannot be served at all, the error wraps one of the errors
// above; Info describes damage that Standalone repairs or leaves out.
func Inspect(ctx context.Context, r io.Reader) (Info, error) {
	src, err := newSource(ctx, r)
	if err != nil {
		return Info{}, err
	}
	defer src.close()
	if src.info.Form == FormStandalone {
		src.scan.skim = true
	}
	rec, err := src.next()
	for ; err == nil; rec, err = src.next() {
		// An entry can convert the database to another schema (ovsdb(5),
		// "Clustered Format"). That is rare, so search the text before parsing it.
		if src.info.Form == FormClustered && rec.number > 1 && rec.mentionsSchema() {
			var entry clusterRecord
			if json.Unmarshal(rec.body, &entry) == nil {
				src.noteSchema(entry.Data)
			}
		}
	}
	if err != io.EOF {
		return src.info, err
	}
	return src.info, nil
}

// damage counts a damaged place. lost reports that its content can't be read.
func (i *Info) damage(lost bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	i.Damaged++
	i.Damage = cmp.Or(i.Damage, text)
	if lost {
		i.Lost++
		i.Loss = cmp.Or(i.Loss, text)
	}
}
