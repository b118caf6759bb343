package rules

import (
	"strings"
	"testing"

	"ovs-offline/answer/rule"
)

// FuzzHostLists reads any text as a list of units and as one of packages: what is found are words of it.
func FuzzHostLists(f *testing.F) {
	f.Add("  UNIT LOAD ACTIVE SUB DESCRIPTION\n● ovs-vswitchd.service loaded failed failed Open vSwitch\n* ovn-controller.service not-found inactive dead a\n")
	f.Add("ii  openvswitch-switch:amd64  3.1.0-2+deb12u1  amd64  Open vSwitch\nrc  ovn-host  23.03.1-1  all  OVN\nhi a:b:c 1\n")
	f.Add(strings.Repeat(".service loaded ", 3))
	f.Fuzz(func(t *testing.T, text string) {
		for name, state := range readUnits(text) {
			if !strings.Contains(text, name) || !strings.Contains(text, state) || state == "" {
				t.Errorf("%q has the unit %q, %q", text, name, state)
			}
		}
		for name, version := range rule.ParsePackages(text) {
			if !strings.Contains(text, name) || !strings.Contains(text, version) || version == "" {
				t.Errorf("%q has the package %q, %q", text, name, version)
			}
		}
	})
}
