package anonymise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// jsonStrings returns a JSON text with each string as change returns it. key is the last key of an object before the
// string, and the string itself if that is a key.
func jsonStrings(text []byte, change func(value, key string) string) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(text))
	key := ""
	for i := 0; i < len(text); {
		if text[i] != '"' {
			b.WriteByte(text[i])
			i++
			continue
		}
		n := literal(text[i:])
		var value string
		if err := json.Unmarshal(text[i:i+n], &value); err != nil {
			return nil, fmt.Errorf("a string at offset %d: %w", i, err)
		}
		i += n
		if rest := bytes.TrimLeft(text[i:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
			key = value
		}
		if err := writeString(&b, change(value, key)); err != nil {
			return nil, err
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

func writeString(b *bytes.Buffer, value string) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	b.Truncate(b.Len() - 1) // the line feed
	return err
}

// addDatabase adds what a transaction of a database holds.
func (f *found) addDatabase(text []byte, stays vocabulary) error {
	_, err := jsonStrings(text, func(value, _ string) string {
		f.add([]byte(value), false, stays)
		return value
	})
	return err
}

// database returns a transaction of a database with everything replaced.
func (r *renamer) database(text []byte) ([]byte, error) {
	return jsonStrings(text, func(value, _ string) string { return r.name(value) })
}

// keptNames adds the names in a transaction that stay, because each of their words does.
func (r *renamer) keptNames(text []byte) error {
	_, err := jsonStrings(text, func(value, key string) string {
		isName := key != value && slices.Contains([]string{"name", "hostname"}, key)
		if isName && strings.ContainsFunc(value, isLetter) && r.name(value) == value {
			r.kept[value] = true
		}
		return value
	})
	return err
}

func isLetter(char rune) bool { return 'a' <= char|0x20 && char|0x20 <= 'z' }
