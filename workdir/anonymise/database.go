package anonymise

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// jsonStrings returns a JSON text with each string as change returns it. before is the string before that one: the key
// of a column or of a map.
func jsonStrings(ctx context.Context, text []byte, change func(value, before string) string) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(text))
	before := ""
	for i := 0; i < len(text); {
		if text[i] != '"' {
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
		i += n
		b.WriteString(ovsdb.Quote(change(value, before)))
		before = value
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
// gives.
func (f *found) addDatabase(ctx context.Context, text []byte, isSouthbound bool, stays vocabulary) error {
	_, err := jsonStrings(ctx, text, func(value, before string) string {
		f.add([]byte(value), false, stays)
		if isName(before) && !strings.HasPrefix(before, "k8s.ovn.org/") && !(isSouthbound && strings.HasSuffix(before, "name") && before != "hostname") {
			f.addName(value, stays)
		}
		if zone, isZone := strings.CutPrefix(value, "ct-zone-"); isZone { // of a logical port or router, in external_ids of a bridge
			f.addName(strings.TrimSuffix(strings.TrimSuffix(zone, "_dnat"), "_snat"), stays)
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
func (r *renamer) database(ctx context.Context, text []byte) ([]byte, error) {
	return jsonStrings(ctx, text, func(value, _ string) string { return r.name(value) })
}

// keptNames adds the names in a transaction that stay, because each of their words does.
func (r *renamer) keptNames(ctx context.Context, text []byte) error {
	_, err := jsonStrings(ctx, text, func(value, before string) string {
		const shortest = 4 // of a number
		isText := len(value) >= shortest || strings.ContainsFunc(value, func(c rune) bool { return c < 0x80 && isLetter(byte(c)) })
		if isName(before) && isText && r.name(value) == value {
			r.kept[value] = true
		}
		return value
	})
	return err
}
