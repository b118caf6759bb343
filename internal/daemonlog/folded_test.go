package daemonlog

import (
	"testing"

	"ovs-offline/test/check/expect"
)

func TestFolded(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"Unreasonably long 1500ms poll interval (12ms user, 0ms system)":        "Unreasonably long # poll interval (# user, # system)",
		"tcp:10.0.0.1:6642: connected":                                          "tcp:#: connected",
		"ssl:[fd00::a:1]:6642: no response to inactivity probe after 5 seconds": "ssl:[#]:#: no response to inactivity probe after # seconds",
		"Claiming lport vm-17 for this chassis.":                                "Claiming lport vm-17 for this chassis.",
		"Claiming lport 7c9dcd3f-0a0b-4c6d-8e9f-000000000001 for this chassis.": "Claiming lport # for this chassis.",
		"vm-17: Claiming 0a:00:00:00:00:01 10.1.0.2/24":                         "vm-17: Claiming # #",
		"cookie 0x7c9dcd3f of 7c9dcd3f":                                         "cookie # of #",
		"node1: added, bad: dead":                                               "node1: added, bad: dead",
		"br-int<->unix#0: 5 flow_mods in the last 0 s (5 adds)":                 "br-int<->unix#: # flow_mods in the last # s (# adds)",
		"term 3: 1234 ms timeout expired":                                       "term #: # ms timeout expired",
		"\xff\xfe 1":                                                            "\xff\xfe #",
	} {
		expect.Equal(t, string(Folded(nil, []byte(text))), want, text)
	}
}
