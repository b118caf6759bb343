package openflow

import (
	"regexp"
	"strings"
)

var (
	meterRef = regexp.MustCompile(`\b(?:meter:|meter_id=)([0-9]+)`)
	groupRef = regexp.MustCompile(`\bgroup:([0-9]+)`)
	tlvRef   = regexp.MustCompile(`\btun_metadata([0-9]+)`)
	tlvName  = regexp.MustCompile(`\bNXM_NX_TUN_METADATA([0-9]+)`)
)

// References are the meters, groups and TLV fields that a flow or a group
// names: without them the switch refuses it.
type References struct {
	Meters, Groups, TLVs map[uint32]bool
}

// ReferenceWords are words of which one is in every text that names anything.
func ReferenceWords() []string { return []string{"meter", "group:", "tun_metadata", "TUN_METADATA"} }

// Add adds what text names.
func (r *References) Add(text string) {
	if r.Meters == nil {
		r.Meters, r.Groups, r.TLVs = map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	}
	collect := func(pattern *regexp.Regexp, word string, into map[uint32]bool) {
		if !strings.Contains(text, word) {
			return // a search for a pattern takes many times as long
		}
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			into[parseID(m[1])] = true
		}
	}
	collect(meterRef, "meter", r.Meters)
	collect(groupRef, "group:", r.Groups)
	collect(tlvRef, "tun_metadata", r.TLVs)
	collect(tlvName, "TUN_METADATA", r.TLVs)
}
