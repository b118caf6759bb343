// Package ovsdb makes an OVSDB database file servable. Files arrive as they
// were found: copied while being written, rewritten by an anonymiser, cut to
// their tail, in the form of a cluster member. The package tells what a file
// is, and writes from it a standalone file that an ovsdb-server serves wholly,
// saying in plain words what it could not keep.
//
// The file format is ovsdb(5): a series of records, each a header line
//
//	OVSDB <JSON|CLUSTER> <length> <sha1>
//
// and length bytes of JSON. ovsdb-server stops at the first record it cannot
// take, and serves what came before as if that were all (ovsdb/log.c and
// ovsdb/file.c of Open vSwitch). So every record has to be right.
package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The names of the databases, as their schemas give them. A file's name says
// nothing: only the schema tells which database it holds.
const (
	OVS = "Open_vSwitch"
	NB  = "OVN_Northbound"
	SB  = "OVN_Southbound"
)

// Form is one of the two forms of ovsdb(5).
type Form string

// The two forms.
const (
	FormStandalone Form = "standalone"
	FormClustered  Form = "clustered"
)

// Info is what a database file says of itself.
type Info struct {
	Name    string // of the schema: OVS, NB, SB or another
	Version string // of the schema the data now has
	Form    Form
	Gzip    bool     // the records were inside a gzip stream
	Records int      // header lines found, the schema's among them
	Damaged int      // how many places were not as they should be
	Damage  []string // the first of them, each in a sentence with record and offset
}

// Sentinels for errors.Is. The errors that wrap them say what to do next.
var (
	ErrEmpty       = errors.New("empty file")
	ErrNotDatabase = errors.New("not an OVSDB database")
	ErrTailed      = errors.New("the beginning of the database is missing")
	ErrJoinOnly    = errors.New("cluster member that never joined: it holds no data")
	ErrSchema      = errors.New("unreadable schema record")
	ErrAlike       = errors.New("rows that ovsdb-server can hardly tell apart")
)

// Inspect reads a database file to its end and says what it is, checking every
// record's length and sum. It reads through gzip. Memory use is that of the
// longest damaged record. A file that cannot be served at all is an error wrapping one
// of the sentinels; damage that Standalone mends or works around is in Info.
func Inspect(ctx context.Context, r io.Reader) (Info, error) {
	src, err := newSource(ctx, r)
	if err != nil {
		return Info{}, err
	}
	defer src.close()
	if src.info.Form == FormStandalone {
		src.scan.onward = nowhere{ctx}
	}
	for {
		if err := ctx.Err(); err != nil {
			return src.info, err
		}
		rec, err := src.next()
		if err == io.EOF {
			return src.info, nil
		}
		if err != nil {
			return src.info, err
		}
		// A conversion to another schema is an entry like others: ovsdb(5),
		// "Clustered Format". It is rare, so look before parsing.
		if src.info.Form == FormClustered && rec.number > 1 && rec.mentionsSchema() {
			var entry clusterRecord
			if json.Unmarshal(rec.body, &entry) == nil {
				src.noteSchema(entry.Data)
			}
		}
	}
}

// maxDamage bounds Info.Damage: an anonymised file has every record changed.
const maxDamage = 8

func (i *Info) damage(format string, args ...any) {
	i.Damaged++
	if len(i.Damage) < maxDamage {
		i.Damage = append(i.Damage, fmt.Sprintf(format, args...))
	}
}
