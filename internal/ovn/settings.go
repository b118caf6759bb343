package ovn

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Integration is the bridge that ovn-controller, or neutron's agent, writes flows to if no
// setting names another one.
const Integration = "br-int"

// Settings are the external_ids in the row of Open_vSwitch, from which ovn-controller takes
// its configuration (ovn-controller(8)).
type Settings map[string]string

// ReadSettings returns the settings in an OVS database; a nil database has none.
func ReadSettings(conf *file.Index) (Settings, error) {
	if conf == nil {
		return nil, nil
	}
	for row, err := range conf.Rows(ovsdb.OVS, "external_ids") {
		return row.Map("external_ids"), err // the table has one row
	}
	return nil, nil
}

// Chassis returns the name of the node's chassis.
func (s Settings) Chassis() string { return s["system-id"] }

// Hostname returns the host name of the node.
func (s Settings) Hostname() string { return s["hostname"] }

// Get returns a setting of ovn-controller. The key with the suffix -CHASSIS goes before the
// key itself, even if it is empty.
func (s Settings) Get(key string) string {
	if value, ok := s[key+"-"+s.Chassis()]; ok && s.Chassis() != "" {
		return value
	}
	return s[key]
}

// Bridge returns the name of OVN's integration bridge.
func (s Settings) Bridge() string { return cmp.Or(s.Get("ovn-bridge"), Integration) }

// Configured reports whether the node has an ovn-controller.
func (s Settings) Configured() bool {
	return s.Get("ovn-remote") != "" || s.Get("ovn-encap-type") != ""
}

// Unknown reports whether the settings were not recorded, so that the node may have an
// ovn-controller.
func (s Settings) Unknown() bool { return s[ovsdb.Unknown] == ovsdb.UnknownSettings }

// Encaps returns the addresses of the node's tunnels.
func (s Settings) Encaps() []netip.Addr {
	var list []netip.Addr
	for text := range strings.SplitSeq(s.Get("ovn-encap-ip"), ",") {
		if addr, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && !slices.Contains(list, addr.Unmap()) {
			list = append(list, addr.Unmap())
		}
	}
	return list
}

// Mappings returns the physical networks that the node reaches, and the bridge of each. A host may run
// further ovn-controllers, each with a chassis and bridges of its own: their mappings follow.
func (s Settings) Mappings() iter.Seq2[string, string] {
	const key = "ovn-bridge-mappings"
	texts := []string{s.Get(key)}
	for _, other := range slices.Sorted(maps.Keys(s)) {
		if chassis, ok := strings.CutPrefix(other, key+"-"); ok && chassis != s.Chassis() {
			texts = append(texts, s[other])
		}
	}
	return func(yield func(network, bridge string) bool) {
		for mapping := range strings.SplitSeq(strings.Join(texts, ","), ",") {
			if network, bridge, ok := strings.Cut(strings.TrimSpace(mapping), ":"); ok && !yield(network, bridge) {
				return
			}
		}
	}
}
