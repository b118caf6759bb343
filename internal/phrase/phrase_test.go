package phrase

import (
	"testing"

	"ovs-offline/test/check/expect"
)

func TestCount(t *testing.T) {
	for want, c := range map[string]struct {
		n    int
		noun string
	}{
		"1 flow": {1, "flow"}, "0 flows": {0, "flow"}, "2 flows": {2, "flow"}, "2 policies": {2, "policy"},
		"1 policy":           {1, "policy"},
		"2 logical switches": {2, "logical switch"}, "3 MAC addresses": {3, "MAC address"}, "2 chassis": {2, "chassis"},
	} {
		expect.Equal(t, Count(c.n, c.noun), want)
	}
}
