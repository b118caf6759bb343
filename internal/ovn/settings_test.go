package ovn_test

import (
	"fmt"
	"maps"
	"testing"

	"ovs-offline/internal/ovn"
)

// TestSettingsOfTheChassisGoFirst has two ovn-controllers on one host (ovn-controller(8)).
func TestSettingsOfTheChassisGoFirst(t *testing.T) {
	plain := ovn.Settings{"system-id": "a", "ovn-bridge": "br-one",
		"ovn-encap-ip": "192.0.2.1, ::ffff:192.0.2.2,192.0.2.1,x", "ovn-bridge-mappings": "net1:br-ex, net2:br-b,bad"}
	own := maps.Clone(plain)
	maps.Copy(own, ovn.Settings{"ovn-bridge-a": "br-two", "ovn-bridge-b": "br-three", "ovn-encap-ip-a": "192.0.2.9",
		"ovn-bridge-mappings-a": "net3:br-own", "ovn-encap-type-a": "geneve"})
	removed := maps.Clone(plain)
	maps.Copy(removed, ovn.Settings{"ovn-bridge-a": "", "ovn-encap-ip-a": "", "ovn-bridge-mappings-a": ""})
	for name, c := range map[string]struct {
		settings         ovn.Settings
		bridge           string
		encaps, mappings string
		configured       bool
	}{
		"none":           {nil, "br-int", "[]", "map[]", false},
		"plain":          {plain, "br-one", "[192.0.2.1 192.0.2.2]", "map[net1:br-ex net2:br-b]", false},
		"of the chassis": {own, "br-two", "[192.0.2.9]", "map[net3:br-own]", true},
		"of another one": {ovn.Settings{"system-id": "a", "ovn-bridge-b": "br-three",
			"ovn-remote-b": "tcp:192.0.2.1:6642"}, "br-int", "[]", "map[]", false},
		"of two": {ovn.Settings{"system-id": "a", "ovn-bridge-mappings-a": "net1:br-one",
			"ovn-bridge-mappings-b": "net2:br-two"}, "br-int", "[]", "map[net1:br-one net2:br-two]", false},
		"emptied": {removed, "br-int", "[]", "map[]", false},
		"without a chassis": {ovn.Settings{"ovn-remote": "ssl:192.0.2.1:6642", "ovn-bridge-": "x", "ovn-bridge": "br-two"},
			"br-two", "[]", "map[]", true},
	} {
		s := c.settings
		if encaps, mappings := fmt.Sprint(s.Encaps()), fmt.Sprint(maps.Collect(s.Mappings())); s.Bridge() != c.bridge ||
			encaps != c.encaps || mappings != c.mappings || s.Configured() != c.configured {
			t.Errorf("%s: bridge %s, addresses %s, networks %s, configured %v; want %+v", name, s.Bridge(), encaps, mappings,
				s.Configured(), c)
		}
	}
}
