package openflow

import "regexp"

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

// Add adds what text names.
func (r *References) Add(text string) {
	if r.Meters == nil {
		r.Meters, r.Groups, r.TLVs = map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	}
	collect := func(pattern *regexp.Regexp, into map[uint32]bool) {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			into[parseID(m[1])] = true
		}
	}
	collect(meterRef, r.Meters)
	collect(groupRef, r.Groups)
	collect(tlvRef, r.TLVs)
	collect(tlvName, r.TLVs)
}
