package openflow

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Key identifies a flow. No two flows of a switch have the same table, priority and match.
// The cookie distinguishes flows whose matches the versions of OpenFlow print differently.
type Key struct {
	Cookie          uint64
	Table, Priority int
	Match           string // the other fields, in the order of the dump, with commas between them
}

// defaultPriority is the priority of a flow that is printed without one.
const defaultPriority = 32768

// ParseKey reads the key of a flow, or of a match alone. A number that can't be read, such as
// the name of a table, is an error and stays in the match.
func ParseKey(flow string) (Key, error) {
	if i := indexActions(flow); i >= 0 {
		flow = flow[:i]
	}
	return parseKey(flow)
}

// parseKey works like ParseKey for what precedes the actions of a flow.
func parseKey(text string) (k Key, err error) {
	k.Priority = defaultPriority
	begin := 0 // of the match in text
	for at := 0; at < len(text); {
		end := at + IndexSeparator(text[at:], true)
		token := text[at:end]
		isMatch, unreadable := k.set(token)
		if unreadable != nil {
			err = unreadable
		}
		switch {
		case !isMatch:
		case k.Match == "":
			begin, k.Match = at, token
		case at == begin+len(k.Match)+1 && text[at-1] == ',': // the match is in one piece until here
			k.Match = text[begin:end]
		default:
			k.Match += "," + token
		}
		at = end + 1
	}
	return k, err
}

// set reads one field of a flow. isMatch is false for a field that does not belong to the match.
func (k *Key) set(token string) (isMatch bool, err error) {
	name, value, _ := strings.Cut(token, "=")
	switch name {
	case "cookie":
		k.Cookie, err = strconv.ParseUint(value, 0, 64)
	case "table", "table_id":
		k.Table, err = strconv.Atoi(value)
	case "priority":
		k.Priority, err = strconv.Atoi(value)
	case "", "send_flow_rem", "reset_counts", "no_packet_counts", "no_byte_counts", "importance":
	default:
		return !isStatistic(name), nil
	}
	if err != nil {
		return true, fmt.Errorf("flow with %s: %w", token, err)
	}
	return false, nil
}

// Key returns the key of a flow.
func (f Flow) Key() Key {
	k, _ := ParseKey(f.Text)
	return k
}

// Criteria returns the key of a flow without the cookie, which bridge/dump-flows does not
// print.
func (f Flow) Criteria() Key { return f.Key().WithoutCookie() }

// Key returns the key of a flow. A number that can't be read is an error, as in ParseKey.
func (e *RawFlow) Key() (Key, error) { return parseKey(e.Match) }

// WithoutCookie returns the key with the cookie 0.
func (k Key) WithoutCookie() Key {
	k.Cookie = 0
	return k
}

// Field returns the value of a field of the match, with its mask; ok is false if the match
// does not have the field.
func (k Key) Field(name string) (value string, ok bool) {
	at := strings.Index(k.Match, name)
	if at < 0 {
		return "", false
	}
	from := 0
	if !strings.ContainsAny(k.Match[:at], `"(`) { // nearly always the case: the fields before it need not be told apart
		from = strings.LastIndexByte(k.Match[:at], ',') + 1
	}
	for token := range Tokens(k.Match[from:]) {
		if found, value, _ := strings.Cut(token, "="); found == name {
			return value, true
		}
	}
	return "", false
}

// Number returns the value of a field whose bits the flow all matches, 0 for any other field.
func (k Key) Number(name string) uint64 {
	value, _ := k.Field(name)
	n, err := strconv.ParseUint(value, 0, 64)
	if err != nil {
		return 0
	}
	return n
}

// LearnedBy returns the cookie, table and priority of the flow that the action learn with certain
// arguments adds (ovs-actions(7)). A number that can't be read is an error, as in ParseKey.
func LearnedBy(arguments string) (k Key, err error) {
	k = Key{Table: 1, Priority: defaultPriority}
	for argument := range Split(arguments) {
		if _, unreadable := k.set(argument); unreadable != nil {
			err = unreadable
		}
	}
	return k, err
}

// CutLearn cuts a text around its first action learn, and returns the arguments of the action;
// found is false if there is none, and before is the whole text.
func CutLearn(text string) (before, arguments, after string, found bool) {
	before, rest, found := strings.Cut(text, "learn(")
	if !found {
		return text, "", "", false
	}
	for end, depth := 0, 1; end < len(rest); end++ {
		switch rest[end] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return before, rest[:end], rest[end+1:], true
		}
	}
	return before, rest, "", true // its end was cut off
}

// A flow with the action conjunction(ID, K/N) is a clause of a conjunction
// (ovs-fields(7), "Conjunctive Match Fields"). Another flow matches conj_id=ID. A clause has no
// other actions but further conjunctions.

const conjunctionWord = "conjunction("

// IsClause reports whether a flow with these actions is a clause of conjunctions.
func IsClause(actions string) bool { return strings.HasPrefix(actions, conjunctionWord) }

// Clauses yields the ids of the conjunctions in a list of actions, each with the dimension
// of the clause ("1/2").
func Clauses(actions string) iter.Seq2[uint32, string] {
	return func(yield func(uint32, string) bool) {
		for actions != "" {
			var clause string
			_, actions, _ = strings.Cut(actions, conjunctionWord)
			clause, _, _ = strings.Cut(actions, ")")
			number, dimension, found := strings.Cut(clause, ",")
			if id, err := strconv.ParseUint(number, 0, 32); found && err == nil && !yield(uint32(id), dimension) {
				return
			}
		}
	}
}
