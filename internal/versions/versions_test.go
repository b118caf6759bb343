package versions

import (
	"testing"

	"ovs-offline/test/check/expect"
)

func TestCompare(t *testing.T) {
	ordered := []string{"", "2.9.10", "2.17.9", "3.1", "3.1.0", "3.1.1~git20230501", "3.10.0", "22.03.8",
		"23.03.1-62.el9fdp", "24.03"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := Compare(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("Compare(%q, %q) is %d", a, b, got)
			}
		}
	}
	if Compare("3.1.0", "3.1.0-rc") != 0 {
		t.Error("what follows the numbers counts")
	}
	// The numbers of a hostile database do not overflow.
	if Compare("99999999999999999999999.1", "3.1.0") >= 0 {
		t.Error("a number that is no int is newer than a version")
	}
}

func TestHas(t *testing.T) {
	for _, c := range []struct {
		version, wanted string
		want            bool
	}{{"3.1.0", "3.1", true}, {"3.1.0", "3", true}, {"3.1.0", "3.1.0", true}, {"3.10.0", "3.1", false},
		{"3.1.0", "3.1.0.1", false}, {"", "3", false}} {
		expect.Equal(t, Has(c.version, c.wanted), c.want, c)
	}
}

// TestPrinted reads the output of the programs themselves.
func TestPrinted(t *testing.T) {
	const nbctl = "ovn-nbctl 25.03.0\nOpen vSwitch Library 3.5.0\nDB Schema 7.11.0\n"
	expect.Equal(t, PrintedOVN([]byte(nbctl)), "25.03.0", "OVN")
	expect.Equal(t, PrintedOVS([]byte("ovs-vswitchd (Open vSwitch) 3.5.0\nDPDK 24.11.2\n")), "3.5.0", "OVS")
	if got := PrintedOVS([]byte(nbctl)) + PrintedOVN([]byte("sh: ovn-nbctl: not found\n")); got != "" {
		t.Errorf("found %q in the output of others", got)
	}
}
