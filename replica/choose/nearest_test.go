package choose

import (
	"testing"

	"ovs-offline/internal/versions"
	"ovs-offline/test/check/expect"
)

// TestNearest lists the candidates of each case from the nearest to the farthest: any
// two of them are compared in both orders.
func TestNearest(t *testing.T) {
	pair := func(ovs, ovn string) versions.Pair { return versions.Pair{OVS: ovs, OVN: ovn} }
	for what, c := range map[string]struct {
		recorded versions.Pair
		ordered  []versions.Pair
	}{
		"exact, newer and older patch, newer, older, unknown": {
			pair("3.3.1", ""),
			[]versions.Pair{pair("3.3.1", "1"), pair("3.3.2", ""), pair("3.3.10", ""), pair("3.3.0", ""), pair("3.5.0", ""),
				pair("4.0.0", ""), pair("3.1.7", ""), pair("2.17.9", ""), pair("", "")},
		},
		"databases alone: only OVN counts": {
			pair("", "25.03.1"),
			[]versions.Pair{pair("2.15.0", "25.03.1"), pair("3.5.0", "25.03.0"), pair("3.5.0", "25.09.0"),
				pair("3.5.0", "26.03.1"), pair("3.5.0", "24.09.2"), pair("3.5.0", "23.03.1"), pair("3.5.0", "")},
		},
		"both programs": {
			pair("3.5.0", "25.03.1"),
			[]versions.Pair{
				pair("3.5.0", "25.03.1"), // both exact
				pair("3.5.0", "25.03.0"),
				pair("3.5.1", "25.03.1"), // both of the same minor version
				pair("3.5.0", "25.09.0"), // Open vSwitch is
				pair("3.5.0", "23.03.1"),
				pair("3.6.0", "25.03.1"), // OVN is
				pair("3.1.0", "25.03.1"),
				pair("4.0.0", "26.03.0"), // neither is
				pair("3.1.0", "23.03.1"),
				pair("3.5.0", ""), // no tools of OVN
				pair("", ""),
			},
		},
		"a version from a schema has no patch number": {
			pair("", "24.03"),
			[]versions.Pair{pair("", "24.03.2"), pair("", "24.09.0"), pair("", "23.09.0")},
		},
		"numbers are no text": {
			pair("3.10.0", ""),
			[]versions.Pair{pair("3.10.2", ""), pair("3.11.0", ""), pair("3.9.0", ""), pair("3.1.0", "")},
		},
		"what follows the numbers does not count": {
			pair("3.3.1-2.el9", ""),
			[]versions.Pair{pair("3.3.1", ""), pair("3.3.2~git1", ""), pair("3.4.0", "")},
		},
	} {
		for i, near := range c.ordered {
			for _, far := range c.ordered[i+1:] {
				if Nearest(c.recorded, []versions.Pair{near, far}) != 0 || Nearest(c.recorded, []versions.Pair{far, near}) != 1 {
					t.Errorf("%s: of %v and %v, the second is nearer to %v", what, near, far, c.recorded)
				}
			}
		}
	}
}

// TestNearestKeepsTheOrder checks that the first of equally near candidates is taken.
func TestNearestKeepsTheOrder(t *testing.T) {
	a, b, c := versions.Pair{OVS: "3.1.0", OVN: "23.03.1"}, versions.Pair{OVS: "3.5.0", OVN: "25.03.0"}, versions.Pair{}
	for _, recorded := range []versions.Pair{{}, {OVS: "3.5.0"}} {
		for _, list := range [][]versions.Pair{{b, b, a}, {b, a, b}} {
			expect.Equal(t, Nearest(recorded, list), 0, recorded, list)
		}
	}
	expect.Equal(t, Nearest(versions.Pair{}, []versions.Pair{c, a, b}), 0, "nothing is recorded")
	if got := Nearest(versions.Pair{OVN: "24.03"}, []versions.Pair{{OVN: "24.03.1"}, {OVN: "24.03.2"}}); got != 0 {
		t.Errorf("the patch number is not recorded: number %d", got)
	}
	if got := Nearest(a, nil); got != -1 {
		t.Errorf("no candidates: %d", got)
	}
}
