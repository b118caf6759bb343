package prove

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/internal/bdd"
)

// witness returns a packet of a set as trace --flow takes it, with random values where the set leaves them open.
func witness(m *symbolic.Machine, set bdd.Set, random *rand.Rand) string {
	family := m.Family()
	bits := m.Space().Pick(set, func(int) bool { return random.IntN(2) == 1 })
	values := map[string]string{}
	numbers := map[string]uint64{}
	for _, f := range m.Fields() {
		var n bdd.Number
		for _, bit := range bits[f.First : f.First+f.Bits] {
			n.High, n.Low = n.High<<1|n.Low>>63, n.Low<<1
			if bit {
				n.Low |= 1
			}
		}
		values[f.Name], numbers[f.Name] = numberText(f, n), n.Low
	}
	var list []string
	add := func(name, value string) { list = append(list, name+"="+value) }
	word := map[symbolic.Family]string{symbolic.IPv4: "ip", symbolic.IPv6: "ipv6", symbolic.ARP: "arp"}[family]
	protocol := ""
	if family != symbolic.ARP {
		protocol = protocolWord(numbers["nw_proto"])
		switch {
		case protocol == "icmp6" && family != symbolic.IPv6, protocol == "icmp" && family != symbolic.IPv4, protocol == "igmp":
			protocol = ""
		case protocol != "" && family == symbolic.IPv6 && protocol != "icmp6":
			word = protocol + "6"
		case protocol != "":
			word = protocol
		}
	}
	for _, name := range []string{"tun_id", "tun_metadata0"} {
		if numbers[name] != 0 {
			add(name, values[name])
		}
	}
	if tci := numbers["vlan_tci"]; tci != 0 {
		add("dl_vlan", fmt.Sprint(tci&0xfff))
		add("dl_vlan_pcp", fmt.Sprint(tci>>13))
	}
	list = append(list, word)
	add("dl_src", values["dl_src"])
	add("dl_dst", values["dl_dst"])
	if family == symbolic.ARP {
		for _, name := range []string{"arp_spa", "arp_tpa", "arp_op", "arp_sha", "arp_tha"} {
			add(name, values[name])
		}
		return strings.Join(list, ",")
	}
	for _, name := range []string{"nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "ipv6_label"} {
		if value, ok := values[name]; ok {
			add(name, value)
		}
	}
	if protocol == "" {
		add("nw_proto", fmt.Sprint(numbers["nw_proto"]))
	}
	add("nw_tos", fmt.Sprint(numbers["nw_tos"]&0xfc))
	add("nw_ecn", fmt.Sprint(numbers["nw_tos"]&3))
	add("nw_ttl", values["nw_ttl"])
	switch protocol {
	case "icmp", "icmp6":
		add("icmp_type", values["tp_src"])
		add("icmp_code", values["tp_dst"])
		if kind := numbers["tp_src"]; protocol == "icmp6" && (kind == 135 || kind == 136) && numbers["tp_dst"] == 0 {
			add("nd_target", values["nd_target"])
			if kind == 135 {
				add("nd_sll", values["nd_sll"])
			} else {
				add("nd_tll", values["nd_tll"])
			}
		}
	case "tcp", "udp", "sctp":
		add("tp_src", values["tp_src"])
		add("tp_dst", values["tp_dst"])
		if flags := numbers["tcp_flags"]; protocol == "tcp" && flags != 2 { // trace takes a packet without any as a SYN
			add("tcp_flags", fmt.Sprintf("%#x", flags))
		}
	}
	return strings.Join(list, ",")
}
