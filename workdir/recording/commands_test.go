package recording

import (
	"testing"

	"ovs-offline/pkg/openflow"
)

func TestByFile(t *testing.T) {
	for file, want := range map[string]struct{ name, bridge string }{
		"recorded/bfd.show":                        {"bfd.show", ""},
		"case/recorded/list-bridge":                {"list-bridge", ""},
		"recorded/bridges/br-int/stp.show":         {"stp.show", "br-int"},
		"wd/recorded/bridges/br%3A1/meter-stats":   {"meter-stats", "br%3A1"},
		"stp.show":                                 {"stp.show", ""},
		"br0/rstp.show":                            {"rstp.show", "br0"},
		"br0.rstp.show":                            {"rstp.show", "br0"},
		"case/br-ex.stp.show.txt":                  {"stp.show", "br-ex"},
		"dpif.show":                                {"dpif.show", ""},
		"host/uptime":                              {"uptime", ""},
		"uptime":                                   {},
		"recorded/uptime":                          {},
		"wd/host/devices/eth0/ethtool.features":    {"ethtool.features", "eth0"},
		"ethtool.features":                         {},
		"recorded/namespaces/qrouter-1/ip.rule":    {"netns.ip.rule", "qrouter-1"},
		"namespaces/a%2Cb/iptables-save":           {"netns.iptables-save", "a%2Cb"},
		"host/iptables-save":                       {"iptables-save", ""},
		"qrouter-1/iptables-save":                  {},
		"netns.ip.rule":                            {},
		"ovn-controller.coverage.show.txt":         {"ovn-controller.coverage.show", ""},
		"coverage.show":                            {"coverage.show", ""},
		"case/dpif.show.txt":                       {"dpif.show", ""},
		"br0.dpif.show":                            {}, // dpif/show covers the node
		"list-bridge":                              {}, // too general a name outside recorded/
		"sos_commands/openvswitch/ovs-appctl_x.sh": {},
	} {
		c, bridge, ok := ByFile(file)
		if string(c.Name) != want.name || bridge != want.bridge || ok != (want.name != "") {
			t.Errorf("%s: %s of %q, %v", file, c.Name, bridge, ok)
		}
	}
}

func TestCommandNamesAreUnique(t *testing.T) {
	seen := map[Name]bool{}
	for _, c := range Commands() {
		if seen[c.Name] || c.Name == "" || c.Line == "" {
			t.Errorf("the row %+v has no name or no line, or the name of another row", c)
		}
		seen[c.Name] = true
	}
}

func TestSosAsksForEachVersion(t *testing.T) {
	c, _ := Find(Groups)
	lines := c.SosLines()
	if want := len(openflow.Versions()) + 1; len(lines) != want ||
		lines[0].Line != "ovs-ofctl -O OpenFlow15 dump-groups" || lines[want-1].Line != "ovs-ofctl dump-groups" {
		t.Errorf("%+v", lines)
	}
}
