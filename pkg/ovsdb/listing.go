package ovsdb

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
)

// Record is a row as `ovs-vsctl list TABLE` prints it.
type Record struct {
	UUID    string
	Columns []Value
}

// Value is a column of a Record. Its text is in the notation of ovs-vsctl, which
// `ovs-vsctl set` reads.
type Value struct{ Column, Text string }

// Column returns the text of a column without the quotes of a string. It returns "" if
// the record lacks the column, or the column has no value ("[]").
func (r Record) Column(name string) string {
	for _, value := range r.Columns {
		if value.Column == name && value.Text != "[]" {
			if text, err := strconv.Unquote(value.Text); err == nil {
				return text
			}
			return value.Text
		}
	}
	return ""
}

var (
	uuidText   = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	columnName = lazyregexp.New(`^[a-z_][a-zA-Z0-9_]*$`)
	columnLine = lazyregexp.New(`^([a-z_][a-zA-Z0-9_]*) *: (.*)$`)
	tableLine  = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*) table$`)
)

// IsUUID reports whether text is a UUID in the notation of OVSDB.
func IsUUID(text string) bool { return uuidText.MatchString(text) }

// maxColumns is several times the number of columns of any table. Lines beyond
// it are skipped.
const maxColumns = 200

// Listing reads the output of `ovs-vsctl list TABLE`. It skips other lines, such
// as the warnings of ovs-vsctl.
func Listing(r io.Reader) ([]Record, error) {
	tables, err := Tables(r, "")
	return tables[""], err
}

// Tables reads the output of `ovsdb-client -f list dump`, which prints the name of a
// table above its records. Records before the first name belong to the table first. A table
// without records is in the result if its name is printed.
func Tables(r io.Reader, first string) (map[string][]Record, error) {
	tables := map[string][]Record{}
	table := first
	_, err := lines.Read(r, func(line []byte) error {
		records := tables[table]
		full := len(records) > 0 && len(records[len(records)-1].Columns) == maxColumns
		if full && !bytes.HasPrefix(line, []byte("_uuid")) && !bytes.HasSuffix(line, []byte(" table")) {
			return nil
		}
		if match := tableLine.FindSubmatch(line); match != nil {
			table = string(match[1])
			if _, known := tables[table]; !known {
				tables[table] = nil // one without records is in the result, too
			}
			return nil
		}
		match := columnLine.FindSubmatch(line)
		if match == nil {
			return nil
		}
		column, value := string(match[1]), string(match[2])
		switch {
		case column == "_uuid" && IsUUID(value):
			tables[table] = append(records, Record{UUID: value})
		case column == "_uuid" || len(records) == 0:
		default:
			last := &records[len(records)-1]
			last.Columns = append(last.Columns, Value{Column: column, Text: value})
		}
		return nil
	})
	return tables, err
}

// List returns rows as `ovs-vsctl list TABLE` prints them.
func List(rows []Record) string {
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%-20s: %s\n", "_uuid", row.UUID)
		for _, value := range row.Columns {
			fmt.Fprintf(&b, "%-20s: %s\n", value.Column, value.Text)
		}
	}
	return b.String()
}
