package openflow

import (
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// IDKind is a kind of things to which flows refer by numbers.
type IDKind int

// The kinds.
const (
	GroupID IDKind = iota
	MeterID
	ConjunctionID
)

// ID identifies a group, a meter or a conjunction of a bridge.
type ID struct {
	Kind   IDKind
	Number uint32
}

// reference matches an id in the text of a flow, with what precedes it.
var reference = lazyregexp.New(`\b(group:|meter:|meter_id=|conjunction\(|conj_id=)([0-9]+)`)

// kindBefore returns the kind of an id by what precedes it in a text.
func kindBefore(before string) IDKind {
	switch before[0] {
	case 'g':
		return GroupID
	case 'm':
		return MeterID
	}
	return ConjunctionID
}

// readReference returns the id in a match of reference; ok is false if its number is too large.
func readReference(match []string) (id ID, ok bool) {
	number, err := strconv.ParseUint(match[2], 10, 32)
	return ID{kindBefore(match[1]), uint32(number)}, err == nil
}

// nestedController matches the head of an action of type NXAST_CONTROLLER2 in the userdata of an action
// controller: ovn-controller executes it when it gets the packet. Its length is in the group.
var nestedController = lazyregexp.New(`ff\.ff\.([0-9a-f]{2}\.[0-9a-f]{2})\.00\.00\.23\.20\.00\.25(?:\.00){6}\.`)

// metersInUserdata returns the offsets of the numbers of meters in the userdata of a flow: of the
// properties NXAC2PT_METER_ID, four bytes each (lib/ofp-actions.c of Open vSwitch).
func metersInUserdata(text string) (offsets []int) {
	const digits, head = len("00."), 16 // of a byte; bytes of the action before its properties
	for _, at := range nestedController.FindAllStringSubmatchIndex(text, -1) {
		length, _ := userdataNumber(text[at[2]:at[3]])
		end := min(len(text), at[0]+int(length)*digits)
		for property := at[0] + head*digits; property+8*digits-1 <= end; {
			kind, ok := userdataNumber(text[property : property+5])
			size, sized := userdataNumber(text[property+6 : property+11])
			if !ok || !sized || size < 4 {
				break
			}
			if kind == 5 && size == 8 {
				offsets = append(offsets, property+4*digits)
			}
			property += int(size+7) / 8 * 8 * digits
		}
	}
	return offsets
}

// userdataNumber reads bytes as ovs-ofctl prints userdata: "00.00.00.05".
func userdataNumber(bytes string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(strings.ReplaceAll(bytes, ".", ""), 16, 32)
	return n, err == nil
}

// MayHaveIDs reports whether a text may have ids. To search for the words first is many times faster
// than the pattern.
func MayHaveIDs(text string) bool {
	return strings.Contains(text, "group:") || strings.Contains(text, "meter") || strings.Contains(text, "conj")
}

// userdataWidth is the length of a number of four bytes in userdata.
const userdataWidth = len("00.00.00.05")

// RenameIDs replaces the number of each id in the text of a flow by what name returns.
func RenameIDs(text string, name func(ID) string) string {
	for _, at := range slices.Backward(metersInUserdata(text)) {
		if n, ok := userdataNumber(text[at : at+userdataWidth]); ok {
			text = text[:at] + name(ID{MeterID, uint32(n)}) + text[at+userdataWidth:]
		}
	}
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		part := reference.FindStringSubmatch(match)
		id, ok := readReference(part)
		if !ok {
			return match
		}
		return part[1] + name(id)
	})
}

// IDs returns the ids in the text of a flow, in their order, and then the meters in userdata.
func IDs(text string) (found []ID) {
	for _, part := range reference.FindAllStringSubmatch(text, -1) {
		if id, ok := readReference(part); ok {
			found = append(found, id)
		}
	}
	for _, at := range metersInUserdata(text) {
		if n, ok := userdataNumber(text[at : at+userdataWidth]); ok {
			found = append(found, ID{MeterID, uint32(n)})
		}
	}
	return found
}
