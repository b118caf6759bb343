package ovsdb

import "cmp"

// IntegrationBridge returns the name of OVN's integration bridge by the external_ids of the
// row of Open_vSwitch (ovn-controller(8)), and whether they configure an ovn-controller.
func IntegrationBridge(ids map[string]string) (name string, ovn bool) {
	return cmp.Or(ids["ovn-bridge"], "br-int"), ids["ovn-remote"] != "" || ids["ovn-encap-type"] != ""
}
