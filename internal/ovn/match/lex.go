// Package match checks the text of matches of ACLs, QoS rules and policy routes (ovn-sb(5), Logical_Flow,
// match). It knows the grammar and the fields that OVN has, and finds no problem in a text of which it
// knows too little.
package match

import (
	"encoding/json"
	"net/netip"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// kind is the kind of a token.
type kind int

const (
	symbol   kind = iota // a field, a predicate or a function
	integer              // a number or an address, with or without a mask
	text                 // a string in quotes
	set                  // $NAME
	group                // @NAME
	operator             // of comparison
	other                // a parenthesis, a brace, a comma, && , || or !
)

type token struct {
	kind kind
	text string
}

// maxLength bounds the text that is read: a longer one is not checked.
const maxLength = 1 << 20

// tokens returns the tokens of a match; ok is false where a character belongs to none.
func tokens(match string) (list []token, ok bool) {
	if len(match) > maxLength {
		return nil, false
	}
	for match = skip(match); len(match) > 0; match = skip(match) {
		t, length := first(match)
		if length == 0 {
			return list, false
		}
		list = append(list, t)
		match = match[length:]
	}
	return list, true
}

// skip leaves out the blanks and the comments at the beginning of a match.
func skip(match string) string {
	for {
		match = strings.TrimLeft(match, " \t\r\n")
		end := ""
		switch {
		case strings.HasPrefix(match, "//"):
			end = "\n"
		case strings.HasPrefix(match, "/*"):
			end = "*/"
		default:
			return match
		}
		_, rest, closed := strings.Cut(match[2:], end)
		if !closed && end == "*/" {
			return match
		}
		match = rest
	}
}

// first returns the first token of a match, and its length, which is 0 if no token is there.
func first(match string) (t token, length int) {
	for _, o := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if strings.HasPrefix(match, o) {
			return token{operator, o}, len(o)
		}
	}
	if strings.HasPrefix(match, "&&") || strings.HasPrefix(match, "||") {
		return token{other, match[:2]}, 2
	}
	switch c := match[0]; {
	case strings.IndexByte("(){},!=", c) >= 0:
		return token{other, match[:1]}, 1
	case c == '"':
		if length = endOfString(match); json.Valid([]byte(match[:length])) {
			return token{text, match[:length]}, length
		}
		return token{}, 0
	case c == '$' || c == '@':
		name := match[1 : 1+run(match[1:], isLetter)]
		if name == "" || isDigit(name[0]) {
			return token{}, 0
		}
		return token{map[byte]kind{'$': set, '@': group}[c], name}, len(name) + 1
	}
	return wordOf(match)
}

// wordOf returns the symbol, the number or the address at the beginning of a match.
func wordOf(match string) (t token, length int) {
	isPart := func(c byte) bool { return isLetter(c) || c == ':' }
	length = run(match, isPart)
	if length == 0 {
		return t, 0
	}
	if word := match[:length]; !isDigit(word[0]) && word[0] != ':' && !isConstant(word) {
		length = run(match, isLetter)
		if bits := inBrackets.FindString(match[length:]); bits != "" {
			length += len(bits)
		}
		return token{symbol, match[:length]}, length
	}
	if rest := match[length:]; strings.HasPrefix(rest, "/") {
		if mask := run(rest[1:], isPart); mask > 0 {
			length += 1 + mask
		}
	}
	return token{integer, match[:length]}, length
}

var inBrackets = lazyregexp.New(`^\[[0-9]+(\.\.[0-9]+)?\]`)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isLetter reports whether a character may be in a name.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '.' || isDigit(c)
}

// run returns how many characters at the beginning of a text are accepted.
func run(text string, accept func(byte) bool) int {
	n := 0
	for n < len(text) && accept(text[n]) {
		n++
	}
	return n
}

// endOfString returns the length of the string in quotes at the beginning of a text, or of the text.
func endOfString(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// isConstant reports whether a word is an address that begins with a letter.
func isConstant(word string) bool {
	return strings.Contains(word, ":") && (isMAC.MatchString(word) || isAddress(word))
}

var isMAC = lazyregexp.New(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`)

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// References returns the names of the address sets and of the port groups that a match refers to.
func References(match string) (sets, groups []string) {
	list, _ := tokens(match)
	for _, t := range list {
		switch t.kind {
		case set:
			sets = append(sets, t.text)
		case group:
			groups = append(groups, t.text)
		}
	}
	return sets, groups
}
