package anonymise

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// place is where a string of a database is.
type place struct {
	kind   string // of the database
	table  string // or _comment
	before string // the key of a column or of a map right before the string, "" for none
	isKey  bool   // the string is such a key
}

// jsonStrings returns a transaction of a database with each string as change returns it.
func jsonStrings(ctx context.Context, text []byte, kind string, change func(value string, at place) string) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(text))
	at, depth := place{kind: kind}, 0
	for i := 0; i < len(text); {
		if text[i] != '"' {
			switch text[i] {
			case '{':
				depth++
			case '}':
				depth--
			}
			b.WriteByte(text[i])
			i++
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := literal(text[i:])
		var value string
		if err := json.Unmarshal(text[i:i+n], &value); err != nil {
			return nil, fmt.Errorf("a string at offset %d: %w", i, err)
		}
		isPair := bytes.HasSuffix(text[:i], []byte("[[")) || bytes.HasSuffix(text[:i], []byte("],["))
		i += n
		isMember := bytes.HasPrefix(text[i:], []byte{':'})
		if depth == 1 && isMember {
			at.table = value
		}
		at.isKey = isPair || isMember
		b.WriteString(ovsdb.Quote(change(value, at)))
		if at.before = ""; at.isKey {
			at.before = value
		}
	}
	return b.Bytes(), nil
}

// literal returns the length of the string at the beginning of a JSON text.
func literal(text []byte) int {
	for n := 1; n < len(text); n++ {
		switch text[n] {
		case '\\':
			n++
		case '"':
			return n + 1
		}
	}
	return len(text)
}

// addDatabase adds what a transaction of a database holds. In the southbound database, most columns named name hold names that OVN
// gives, and in that of Open vSwitch names that flows and outputs have.
func (f *found) addDatabase(ctx context.Context, text []byte, kind string, stays vocabulary) error {
	_, err := jsonStrings(ctx, text, kind, func(value string, at place) string {
		f.add([]byte(value), false, stays)
		isChassis := at.before == "system-id" || at.before == "chassis_name" || kind == string(workdir.SB) && strings.HasPrefix(at.table, "Chassis") && at.before == "name"
		isGiven := kind == string(workdir.SB) && strings.HasSuffix(at.before, "name") && at.before != "hostname" || strings.HasPrefix(at.before, "k8s.ovn.org/")
		switch isID := len(readUUID([]byte(value)).text) == len(value) && value != ""; {
		case isChassis && isID:
			f.addSystemID(value)
		case isChassis, isName(at.before) && !isGiven:
			f.addName(value, stays, at.before != "network_name" && (kind != string(workdir.OVS) || slices.Contains(ofHosts, at.before)))
		}
		if zone, isZone := strings.CutPrefix(value, "ct-zone-"); isZone { // of a logical port or router, in external_ids of a bridge
			f.addName(strings.TrimSuffix(strings.TrimSuffix(zone, "_dnat"), "_snat"), stays, false)
		}
		return value
	})
	return err
}

// isName reports whether a column, or a key of a map, holds names.
func isName(column string) bool {
	return strings.HasSuffix(column, "name") || column == "iface-id" || column == "logical_port"
}

// database returns a transaction of a database with everything replaced.
func (r *renamer) database(ctx context.Context, text []byte, kind string) ([]byte, error) {
	return jsonStrings(ctx, text, kind, r.column)
}

// keptNames adds the names in a transaction that stay, because each of their words does.
func (r *renamer) keptNames(ctx context.Context, text []byte, kind string) error {
	_, err := jsonStrings(ctx, text, kind, func(value string, at place) string {
		const shortest = 4 // of a number
		isText := len(value) >= shortest || strings.ContainsFunc(value, func(c rune) bool { return c < 0x80 && isLetter(byte(c)) })
		if isName(at.before) && isText && r.column(value, at) == value {
			r.kept[value] = true
		}
		return value
	})
	return err
}
