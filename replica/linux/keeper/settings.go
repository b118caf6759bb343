//go:build linux

package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"ovs-offline/replica/report"
)

// longTime is a timeout in seconds that no replica lives to see.
const longTime = "8640000"

// kernelDefaults returns the settings of devices that decide what becomes of a packet, with the values that the kernel
// itself gives them (net/ipv4/devinet.c and net/ipv6/addrconf.c of Linux).
func kernelDefaults() map[string]string {
	defaults := map[string]string{}
	for value, names := range map[string]string{
		"0": "forwarding rp_filter arp_ignore arp_announce arp_filter arp_accept proxy_arp proxy_arp_pvlan accept_local " +
			"accept_source_route route_localnet src_valid_mark drop_gratuitous_arp bc_forwarding bootp_relay medium_id " +
			"ignore_routes_with_linkdown drop_unicast_in_l2_multicast",
		"1": "accept_redirects send_redirects secure_redirects shared_media",
	} {
		for name := range strings.FieldsSeq(names) {
			defaults["net.ipv4.conf.%s."+name] = value
		}
	}
	for _, name := range []string{"forwarding", "disable_ipv6", "proxy_ndp", "accept_source_route"} {
		defaults["net.ipv6.conf.%s."+name] = "0"
	}
	return defaults
}

// resetSettings takes from the namespace what it inherited of this machine (net.core.devconf_inherit_init_net), which
// says nothing about the node. A router forwards: its settings may not have been recorded.
func (s *space) resetSettings() {
	for _, group := range []string{"all", "default", loopback} { // other devices begin with those of "default"
		for name, value := range kernelDefaults() {
			_ = writeSetting(fmt.Sprintf(name, group), value)
		}
	}
	if s.recorded.IsRouter() {
		_ = writeSetting("net.ipv4.ip_forward", "1")
		_ = writeSetting("net.ipv6.conf.all.forwarding", "1")
	}
}

// quieten makes the kernel send nothing by itself in the namespace: no duplicate address detection, no router
// solicitations, no addresses of its own. What it sends because of a frame, it sends each time.
func (s *space) quieten() {
	for _, group := range []string{"all", "default"} {
		for name, value := range map[string]string{"accept_dad": "0", "dad_transmits": "0", "router_solicitations": "0", "accept_ra": "0", "autoconf": "0", "addr_gen_mode": "1", "mldv1_unsolicited_report_interval": "0", "mldv2_unsolicited_report_interval": "0"} {
			_ = writeSetting("net.ipv6.conf."+group+"."+name, value)
		}
	}
	// A question must not depend on how many there were before it.
	for name, value := range map[string]string{"net.ipv4.icmp_ratemask": "0", "net.ipv4.icmp_msgs_per_sec": "1000000", "net.ipv4.icmp_msgs_burst": "1000000", "net.ipv6.icmp.ratelimit": "0"} {
		_ = writeSetting(name, value)
	}
}

// applySettings applies the recorded settings, the general ones first: they change those of the devices.
func (s *space) applySettings() {
	names := make([]string, 0, len(s.recorded.Sysctls))
	for name := range s.recorded.Sysctls {
		if s.hasSubject(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if a, b := rank(a), rank(b); a != b {
			return a - b
		}
		return strings.Compare(a, b)
	})
	s.report.Record(report.Settings, len(names))
	for _, name := range names {
		value := s.recorded.Sysctls[name]
		if now, err := readSetting(name); err == nil && now == value {
			s.report.Restore(report.Settings, 1)
			continue
		}
		err := writeSetting(name, value)
		now, readErr := readSetting(name)
		switch {
		case readErr == nil && now == value:
			s.report.Restore(report.Settings, 1)
		case errors.Is(readErr, fs.ErrNotExist):
			s.report.Reject(report.Settings, name+" = "+value, "this kernel has no such setting")
		case err != nil:
			s.report.Reject(report.Settings, name+" = "+value, "%v", err)
		default:
			s.report.Differ(report.Settings, name+" = "+value, "it is %s", now)
		}
	}
}

// rank orders settings: ip_forward sets all others of forwarding, "all" those of the devices.
func rank(name string) int {
	switch {
	case name == "net.ipv4.ip_forward":
		return 0
	case strings.Contains(name, ".conf.all."):
		return 1
	case strings.Contains(name, ".conf.default."):
		return 2
	}
	return 3
}

// hasSubject reports whether a setting is about the namespace as a whole, or about a device that was restored.
func (s *space) hasSubject(name string) bool {
	rest, ok := strings.CutPrefix(name, "net.ipv4.conf.")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "net.ipv6.conf."); !ok {
			return true
		}
	}
	i := strings.LastIndexByte(rest, '.')
	if i < 0 {
		return true
	}
	device := strings.ReplaceAll(rest[:i], "/", ".")
	return device == "all" || device == "default" || s.device(device) != nil
}

// settingPath returns the file of a setting. sysctl(8) writes the dots of a device's name as slashes.
func settingPath(name string) (string, error) {
	swapped := strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
	if !strings.HasPrefix(swapped, "net/") || strings.Contains("/"+swapped+"/", "/../") || strings.Contains(swapped, "//") {
		return "", fmt.Errorf("%q is not the name of a setting of networks", name)
	}
	return "/proc/sys/" + swapped, nil
}

func writeSetting(name, value string) error {
	path, err := settingPath(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

func readSetting(name string) (string, error) {
	path, err := settingPath(name)
	if err != nil {
		return "", err
	}
	value, err := os.ReadFile(path)
	return strings.TrimSpace(string(value)), err
}
