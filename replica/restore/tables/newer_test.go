package tables

import (
	"os/exec"
	"testing"

	"ovs-offline/internal/versions"
	"ovs-offline/test/daemons/ovs"
)

// TestKnownFrom lets the installed ovs-ofctl parse flows of each version of the list. It
// must refuse those, and only those, of a version that is newer than its own.
func TestKnownFrom(t *testing.T) {
	ovs.Need(t, "ovs-ofctl")
	printed, err := exec.Command("ovs-ofctl", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	installed := versions.PrintedOVS(printed)
	for flow, version := range map[string]string{
		"reg16=1,actions=drop":                "3.7",
		"xreg8=1,actions=drop":                "3.7",
		"actions=load:1->NXOXM_ET_REG16[]":    "3.7",
		"actions=move:NXM_NX_REG0[]->reg31[]": "3.7",
		"actions=set_field:1->xxreg4":         "3.7",
		"actions=sample(probability=1,collector_set_id=1,obs_domain_id=1,obs_point_id=NXM_NX_REG3[])": "3.4",
		"actions=encap(mpls)":                                        "2.17",
		"actions=delete_field:tun_metadata0":                         "2.14",
		"tun_gtpu_flags=1,actions=drop":                              "2.14",
		"actions=check_pkt_larger(1)->reg0[0]":                       "2.12",
		"icmp6,icmp_type=135,icmp_code=0,nd_reserved=1,actions=drop": "2.12",
		"reg15=1,xreg7=1,xxreg3=1,actions=drop":                      "",
		"frobnicate=1,actions=drop":                                  "",
	} {
		out, err := exec.Command("ovs-ofctl", "-OOpenFlow15", "parse-flow", flow).CombinedOutput()
		older := version != "" && versions.Compare(installed, version) < 0
		if err != nil && knownFrom(string(out), flow) != version {
			t.Errorf("%s: known from %q, want %q: %s", flow, knownFrom(string(out), flow), version, out)
		}
		if version != "" && (err != nil) != older {
			t.Errorf("%s: Open vSwitch %s: %v, but it is known from %s: %s", flow, installed, err, version, out)
		}
	}
}
