// Package match checks the text of matches of ACLs, QoS rules and policy routes (ovn-sb(5), Logical_Flow,
// match). It knows the grammar and the fields that OVN has, and finds no problem in a text of which it
// knows too little.
package match

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
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

var pieces = regexp.MustCompile(`^(?:(\s+|//[^\n]*|/\*(?s:.*?)\*/)|("(?:[^"\\]|\\.)*")|(\$[A-Za-z_.][A-Za-z0-9_.]*)|(@[A-Za-z_.][A-Za-z0-9_.]*)|([=!<>]=|[<>])|(&&|\|\||[(){},!=])|([0-9A-Fa-f:][0-9A-Fa-fxX:.]*(?:/[0-9A-Fa-fxX:.]+)?)|([A-Za-z_.][A-Za-z0-9_.]*(?:\[[0-9]+(?:\.\.[0-9]+)?\])?))`)

// maxLength bounds the text that is read: a longer one is not checked.
const maxLength = 1 << 20

// tokens returns the tokens of a match; ok is false where a character belongs to none. A word such as
// "fade" could be a number: it is a symbol unless it has a digit or a colon in its beginning.
func tokens(match string) (list []token, ok bool) {
	if len(match) > maxLength {
		return nil, false
	}
	for len(match) > 0 {
		found := pieces.FindStringSubmatch(match)
		if found == nil {
			return list, false
		}
		piece := found[0]
		switch {
		case found[1] != "":
		case found[2] != "":
			if !json.Valid([]byte(piece)) {
				return list, false
			}
			list = append(list, token{text, piece})
		case found[3] != "":
			list = append(list, token{set, piece[1:]})
		case found[4] != "":
			list = append(list, token{group, piece[1:]})
		case found[5] != "":
			list = append(list, token{operator, piece})
		case found[6] != "":
			list = append(list, token{other, piece})
		default:
			piece = wordOf(match, found[7], found[8])
			of := integer
			if isSymbol.MatchString(piece) && !isConstant(piece) {
				of = symbol
			}
			list = append(list, token{of, piece})
		}
		match = match[len(piece):]
	}
	return list, true
}

var (
	isSymbol = regexp.MustCompile(`^[A-Za-z_.]`)
	word     = regexp.MustCompile(`^[A-Za-z_.][A-Za-z0-9_.]*(?:\[[0-9]+(?:\.\.[0-9]+)?\])?`)
)

// wordOf returns the word at the beginning of a match: a symbol if it goes on behind what could be a number.
func wordOf(match, number, name string) string {
	if name != "" {
		return name
	}
	if longer := word.FindString(match); len(longer) > len(number) {
		return longer
	}
	return number
}

// isConstant reports whether a word is an address that begins with a letter.
func isConstant(word string) bool {
	address, _, _ := strings.Cut(word, "/")
	return strings.Contains(word, ":") && (isMAC.MatchString(address) || isAddress(address))
}

var isMAC = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`)

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
