//go:build linux

package keeper

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/iproute"
	"ovs-offline/replica/report"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir/netns"
)

// machines are the values of all settings of devices that two machines give to a new namespace.
func machines() []string { return []string{"0", "1"} }

// irrelevant are settings that do not decide what becomes of a frame: what is logged, and what a kernel sends by
// itself.
func irrelevant() []string {
	return []string{"log_martians", "igmpv2_unsolicited_report_interval", "igmpv3_unsolicited_report_interval",
		"force_igmp_version", "arp_notify", "promote_secondaries", "disable_policy", "disable_xfrm",
		"arp_evict_nocarrier", "tag"}
}

// TestSettingsDoNotDependOnTheMachine gives a new namespace the settings of two machines, one with all settings of
// devices switched off and one with all switched on, as a kernel does with net.core.devconf_inherit_init_net, and
// restores a namespace of which a report had no settings, and one with some of them.
func TestSettingsDoNotDependOnTheMachine(t *testing.T) {
	links := []iproute.Link{{Name: "qr-1", MAC: "fa:16:3e:00:00:01", MTU: 1500, Up: true}}
	for name, c := range map[string]struct {
		recorded netns.Namespace
		want     map[string]string
	}{
		"a router": {netns.Namespace{Name: "qrouter-1"}, map[string]string{"net.ipv4.ip_forward": "1",
			"net.ipv4.conf.qr-1.forwarding": "1", "net.ipv6.conf.qr-1.forwarding": "1", "net.ipv4.conf.all.rp_filter": "0",
			"net.ipv4.conf.qr-1.accept_local": "0", "net.ipv4.conf.qr-1.proxy_arp": "0",
			"net.ipv4.conf.qr-1.send_redirects": "1"}},
		"a DHCP server": {netns.Namespace{Name: "qdhcp-1"}, map[string]string{"net.ipv4.ip_forward": "0",
			"net.ipv4.conf.qr-1.forwarding": "0", "net.ipv4.conf.qr-1.accept_redirects": "1"}},
		"a router with settings": {netns.Namespace{Name: "snat-1", Sysctls: map[string]string{"net.ipv4.ip_forward": "0",
			"net.ipv4.conf.default.rp_filter": "2", "net.ipv4.conf.qr-1.rp_filter": "1", "net.ipv4.conf.all.arp_ignore": "1"}},
			map[string]string{"net.ipv4.ip_forward": "0", "net.ipv4.conf.qr-1.forwarding": "0",
				"net.ipv4.conf.qr-1.rp_filter": "1", "net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.conf.lo.arp_filter": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.recorded.Links = links
			var all []map[string]string
			for _, value := range machines() {
				all = append(all, settingsAfter(t, c.recorded, value))
			}
			expect.Equal(t, all[0], all[1], "the settings on the two machines")
			for setting, want := range c.want {
				expect.Equal(t, all[0][setting], want, setting)
			}
		})
	}
}

// settingsAfter restores a namespace that had one value in all settings of devices, and returns all settings.
func settingsAfter(t *testing.T, recorded netns.Namespace, value string) map[string]string {
	t.Helper()
	s, err := newSpace(recorded, readKernel(), tools{}, report.NewNamespace(recorded.Name), "/")
	if err != nil {
		t.Skip(err)
	}
	defer close(s.work)
	found := map[string]string{}
	s.do(func() {
		for _, file := range deviceSettings() {
			_ = os.WriteFile(file, []byte(value), 0) // a setting may take no such value
		}
		s.resetSettings()
		s.quieten()
		s.makeDevices()
		s.applySettings()
		for _, file := range append(deviceSettings(), "/proc/sys/net/ipv4/ip_forward") {
			text, err := os.ReadFile(file)
			if name := strings.TrimPrefix(file, "/proc/sys/"); err == nil {
				found[strings.ReplaceAll(name, "/", ".")] = strings.TrimSpace(string(text))
			}
		}
	})
	return found
}

// deviceSettings returns the files of the settings of devices in the namespace of the thread.
func deviceSettings() []string {
	v4, _ := filepath.Glob("/proc/sys/net/ipv4/conf/*/*") // the pattern is right
	v6, _ := filepath.Glob("/proc/sys/net/ipv6/conf/*/*")
	return slices.DeleteFunc(append(v4, v6...), func(file string) bool {
		name := filepath.Base(file)
		return slices.Contains(irrelevant(), name) ||
			strings.Contains(file, "ipv6") && name != "forwarding" && name != "disable_ipv6" && name != "proxy_ndp"
	})
}
