package openflow

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// tlvRef matches a TLV field in the text of a flow.
var tlvRef = lazyregexp.New(`\b(?:tun_metadata|NXM_NX_TUN_METADATA)([0-9]+)`)

// References are the ids of the meters, groups and TLV fields that flows or
// groups refer to. A switch rejects a flow that refers to a missing one.
type References struct {
	Meters, Groups, TLVs map[uint32]bool
}

// HasReference reports whether Add may find a reference in text.
func HasReference(text string) bool {
	return strings.Contains(text, "meter") || strings.Contains(text, "group:") || hasTLV(text)
}

func hasTLV(text string) bool {
	return strings.Contains(text, "tun_metadata") || strings.Contains(text, "TUN_METADATA")
}

// Add adds what the text of a flow or a group refers to.
func (r *References) Add(text string) {
	if r.Meters == nil {
		r.Meters, r.Groups, r.TLVs = map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	}
	if strings.Contains(text, "meter") || strings.Contains(text, "group:") { // matching the pattern takes many times as long
		for _, match := range reference.FindAllStringSubmatch(text, -1) {
			switch kindBefore(match[1]) {
			case MeterID:
				r.Meters[parseID(match[2])] = true
			case GroupID:
				r.Groups[parseID(match[2])] = true
			}
		}
	}
	if hasTLV(text) {
		for _, match := range tlvRef.FindAllStringSubmatch(text, -1) {
			r.TLVs[parseID(match[1])] = true
		}
	}
}
