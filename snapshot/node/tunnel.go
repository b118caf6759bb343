// Package node reads the OVS database of a recorded node: its bridges, ports and
// interfaces.
package node

import "slices"

// IsTunnel reports whether interfaces of a type are ends of tunnels (ovs-vswitchd.conf.db(5)).
func IsTunnel(kind string) bool {
	kinds := []string{"geneve", "gre", "vxlan", "lisp", "stt", "erspan", "ip6erspan", "ip6gre", "gtpu", "bareudp", "srv6"}
	return slices.Contains(kinds, kind)
}
