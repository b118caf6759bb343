package reach

import (
	"net/netip"
	"testing"
)

// TestSpansHoldTheirAddresses has prefixes and masks, as rules of ACLs and routes name them, with addresses on both
// sides of their ends.
func TestSpansHoldTheirAddresses(t *testing.T) {
	for text, addresses := range map[string]map[string]bool{
		"10.0.0.0/24":          {"10.0.0.0": true, "10.0.0.255": true, "10.0.1.0": false},
		"10.0.0.16/28":         {"10.0.0.16": true, "10.0.0.31": true, "10.0.0.32": false, "10.0.0.15": false},
		"10.0.0.9/255.0.0.255": {"10.7.7.9": true, "10.7.7.8": false, "11.0.0.9": false},
		"fd00::/127":           {"fd00::1": true, "fd00::2": false, "10.0.0.1": false},
	} {
		s, ok := parseSpan(text)
		if !ok {
			t.Errorf("%s is no span", text)
			continue
		}
		for address, want := range addresses {
			if got := s.contains(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s holds %s: got %t, want %t", text, address, got, want)
			}
		}
	}
}
