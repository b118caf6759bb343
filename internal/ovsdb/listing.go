package ovsdb

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
)

// Record is a row as `ovs-vsctl list TABLE` prints it.
type Record struct {
	UUID    string
	Columns []Value
}

// Value is a column of a Record, in the words of ovs-vsctl, which reads them
// back in `ovs-vsctl set`.
type Value struct{ Column, Text string }

var (
	uuidText   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	listedLine = regexp.MustCompile(`^([a-z_][a-zA-Z0-9_]*) *: (.*)$`)
	tableLine  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*) table$`)
)

// mostColumns is several times what any table has.
const mostColumns = 200

// Listing reads the output of `ovs-vsctl list`. Lines that are none of it (the
// warnings that ovs-vsctl prints among them) are passed over.
func Listing(r io.Reader) ([]Record, error) {
	tables, err := Tables(r, "")
	return tables[""], err
}

// Tables reads the output of `ovsdb-client -f list dump`, which has the name of
// a table above its records; those before the first name are of the table first.
func Tables(r io.Reader, first string) (map[string][]Record, error) {
	tables := map[string][]Record{}
	table := first
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		records := tables[table]
		full := len(records) > 0 && len(records[len(records)-1].Columns) == mostColumns
		if text := scanner.Bytes(); full && !bytes.HasPrefix(text, []byte("_uuid")) && !bytes.HasSuffix(text, []byte(" table")) {
			continue
		}
		line := strings.TrimRight(scanner.Text(), "\r")
		if m := tableLine.FindStringSubmatch(line); m != nil {
			table = m[1]
			continue
		}
		m := listedLine.FindStringSubmatch(line)
		switch {
		case m == nil:
		case m[1] == "_uuid" && uuidText.MatchString(m[2]):
			tables[table] = append(records, Record{UUID: m[2]})
		case m[1] == "_uuid" || len(records) == 0:
		default:
			last := &records[len(records)-1]
			last.Columns = append(last.Columns, Value{Column: m[1], Text: m[2]})
		}
	}
	return tables, scanner.Err()
}
