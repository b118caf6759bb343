package ovsdb

import (
	"bytes"
	"encoding/json"
	"strings"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// valueOf returns a <value> of RFC 7047, 5.1, from its text. A text as ovsdb-server writes it
// most of the time, without blanks, is read here, eight times as fast as by
// encoding/json, which reads all others.
func valueOf(text []byte) (any, bool) {
	plain := plain{rest: text}
	if value, ok := plain.value(); ok && len(plain.rest) == 0 {
		return value, true
	}
	var value any
	if json.Unmarshal(text, &value) != nil {
		return nil, false
	}
	return parseValue(value)
}

// plain reads values in their usual notation. Its methods return false for another one; then
// they may have read a part of it.
type plain struct{ rest []byte }

func (p *plain) skip(text string) bool {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

func (p *plain) value() (any, bool) {
	switch {
	case p.skip(`["set",[`):
		set := rfc.OvsSet{GoSet: []any{}}
		return p.list(func() bool {
			element, ok := p.atom()
			set.GoSet = append(set.GoSet, element)
			return ok
		}, func() any { return set })
	case p.skip(`["map",[`):
		values := rfc.OvsMap{GoMap: map[any]any{}}
		return p.list(func() bool {
			if !p.skip("[") {
				return false
			}
			key, isKey := p.atom()
			isPair := isKey && p.skip(",")
			value, isValue := p.atom()
			if isPair && isValue {
				values.GoMap[key] = value
			}
			return isPair && isValue && p.skip("]")
		}, func() any { return values })
	}
	return p.atom()
}

// list reads the elements of a set or a map, and its end.
func (p *plain) list(element func() bool, result func() any) (any, bool) {
	for first := true; !p.skip("]]"); first = false {
		if !first && !p.skip(",") || !element() {
			return nil, false
		}
	}
	return result(), true
}

func (p *plain) atom() (any, bool) {
	switch {
	case p.skip(`["uuid",`):
		uuid, ok := p.text()
		return rfc.UUID{GoUUID: uuid}, ok && p.skip("]")
	case p.skip("true"):
		return true, true
	case p.skip("false"):
		return false, true
	}
	if len(p.rest) > 0 && p.rest[0] == '"' {
		return p.text()
	}
	return p.number()
}

// text reads a string of printable ASCII characters, in which quotes and backslashes may be
// escaped.
func (p *plain) text() (string, bool) {
	if !p.skip(`"`) {
		return "", false
	}
	escapes := 0
	for i := 0; i < len(p.rest); i++ {
		switch char := p.rest[i]; {
		case char == '"':
			text := unescaped(p.rest[:i], escapes)
			p.rest = p.rest[i+1:]
			return text, true
		case char == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return "", false
			}
			escapes++
		case char < ' ' || char > '~':
			return "", false
		}
	}
	return "", false
}

// unescaped returns a text without the backslashes that escape the characters after them.
func unescaped(text []byte, escapes int) string {
	if escapes == 0 {
		return string(text)
	}
	var b strings.Builder
	b.Grow(len(text) - escapes)
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// number reads an integer that a float64 holds exactly.
func (p *plain) number() (any, bool) {
	const digits = 15
	n, end := 0, 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		n = n*10 + int(p.rest[end]-'0')
		if end++; end > digits {
			return nil, false
		}
	}
	if end == 0 || p.rest[0] == '0' && end > 1 || end < len(p.rest) && bytes.IndexByte([]byte(",]"), p.rest[end]) < 0 {
		return nil, false
	}
	p.rest = p.rest[end:]
	return float64(n), true
}
