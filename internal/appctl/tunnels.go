package appctl

import "regexp"

// Neighbour is an entry of tnl/arp/show (lib/tnl-neigh-cache.c, tnl_neigh_cache_show).
type Neighbour struct{ Address, MAC, Bridge string }

var neighbour = regexp.MustCompile(`^([0-9a-fA-F.:]+)\s+([0-9a-f]{2}(?::[0-9a-f]{2}){5})\s+(\S.*)$`)

// Neighbours reads tnl/arp/show.
func Neighbours(text string) []Neighbour {
	var list []Neighbour
	for found := range parts(text, neighbour) {
		list = append(list, Neighbour{found[1], found[2], found[3]})
	}
	return list
}

// tunnelPort matches "genev_sys_6081 (6081) ref_cnt=1".
var tunnelPort = regexp.MustCompile(`^(\S+) \(\d+\)(.*)`)

// TunnelPorts reads tnl/ports/show -v (lib/tnl-ports.c, tnl_port_show): its
// entries without their datapath port numbers, which ovs-vswitchd chooses.
func TunnelPorts(text string) []string {
	var list []string
	for found := range parts(text, tunnelPort) {
		list = append(list, found[1]+found[2])
	}
	return list
}
