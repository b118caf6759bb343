package openflow

import (
	"regexp"
	"strings"
)

var (
	meterRef = regexp.MustCompile(`\b(?:meter:|meter_id=)([0-9]+)`)
	groupRef = regexp.MustCompile(`\bgroup:([0-9]+)`)
	tlvRef   = regexp.MustCompile(`\b(?:tun_metadata|NXM_NX_TUN_METADATA)([0-9]+)`)
)

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
	collect := func(pattern *regexp.Regexp, may bool, into map[uint32]bool) {
		if !may {
			return // matching a pattern would take many times as long
		}
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			into[parseID(m[1])] = true
		}
	}
	collect(meterRef, strings.Contains(text, "meter"), r.Meters)
	collect(groupRef, strings.Contains(text, "group:"), r.Groups)
	collect(tlvRef, hasTLV(text), r.TLVs)
}
