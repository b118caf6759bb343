package replica

import (
	"maps"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestVLANsTellPorts checks which numbers are told apart by the VLANs that flows push and that were learned at the
// peers of names.
func TestVLANsTellPorts(t *testing.T) {
	type vlans = map[string]bool
	for name, c := range map[string]struct {
		pushed  map[int]vlans
		learned map[string]vlans
		want    map[int]string
	}{
		"one VLAN tells both": {map[int]vlans{8: {"120": true}}, map[string]vlans{"a": {"120": true}},
			map[int]string{8: "a", 9: "b"}},
		"each has its VLAN": {map[int]vlans{8: {"120": true}, 9: {"7": true}},
			map[string]vlans{"b": {"120": true}, "a": {"7": true}}, map[int]string{8: "b", 9: "a"}},
		"nothing is pushed":   {nil, map[string]vlans{"a": {"120": true}}, map[int]string{}},
		"nothing was learned": {map[int]vlans{8: {"120": true}}, nil, map[int]string{}},
		"both push it": {map[int]vlans{8: {"120": true}, 9: {"120": true}},
			map[string]vlans{"a": {"120": true}}, map[int]string{}},
		"it was learned at both": {map[int]vlans{8: {"120": true}},
			map[string]vlans{"a": {"120": true}, "b": {"120": true}}, map[int]string{}},
		"another VLAN was learned": {map[int]vlans{8: {"120": true}}, map[string]vlans{"a": {"121": true}},
			map[int]string{}},
		"two VLANs of a port disagree": {map[int]vlans{8: {"120": true, "7": true}},
			map[string]vlans{"a": {"120": true}, "b": {"7": true}}, map[int]string{}},
		"two ports claim the same name": {map[int]vlans{8: {"120": true}, 9: {"7": true}},
			map[string]vlans{"a": {"120": true, "7": true}}, map[int]string{}},
		"two VLANs of a port tell alike": {map[int]vlans{8: {"120": true, "7": true}},
			map[string]vlans{"b": {"120": true, "7": true}}, map[int]string{8: "b", 9: "a"}},
	} {
		got := map[int]string{}
		for number, found := range (alike{[]int{8, 9}, []string{"a", "b"}}).match(c.pushed, c.learned) {
			got[number] = found.name
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	three := alike{[]int{1, 2, 3}, []string{"a", "b", "c"}}.match(map[int]vlans{1: {"5": true}},
		map[string]vlans{"b": {"5": true}})
	expect.Equal(t, len(three), 1) // two remain, and nothing tells which is which
}
