package odp

import (
	"fmt"
	"strconv"

	"ovs-offline/trace/flow"
)

// Apply changes a packet's headers as the action does.
func (c Change) Apply(p *flow.Packet) error { return c.apply(p, c) }

func parseSet(args string) (Action, error) {
	key, inner, nested := call(args)
	if !nested {
		return nil, fmt.Errorf("set(%s) has no fields", args)
	}
	if key == "tunnel" {
		return parseSetTunnel(inner)
	}
	c := Change{Name: "set", Key: key, Args: arguments(inner), apply: applySet}
	if key == "skb_mark" || key == "skb_priority" {
		return c, nil
	}
	for _, a := range c.Args {
		if a.Key == "proto" || a.Key == "frag" {
			continue // a set action can't change them
		}
		if fieldOf(key, a.Key) == "" && a.Key != "tos" && a.Key != "tclass" {
			return nil, fmt.Errorf("set(%s) has an unknown field %q", key, a.Key)
		}
	}
	return c, nil
}

// fieldOf returns the name in a flow of a field in a datapath action.
func fieldOf(key, field string) string {
	switch key + "." + field {
	case "eth.src":
		return "dl_src"
	case "eth.dst":
		return "dl_dst"
	case "ipv4.src":
		return "nw_src"
	case "ipv4.dst":
		return "nw_dst"
	case "ipv4.ttl", "ipv6.hlimit":
		return "nw_ttl"
	case "ipv6.src":
		return "ipv6_src"
	case "ipv6.dst":
		return "ipv6_dst"
	case "ipv6.label":
		return "ipv6_label"
	case "tcp.src", "udp.src", "sctp.src":
		return "tp_src"
	case "tcp.dst", "udp.dst", "sctp.dst":
		return "tp_dst"
	case "icmp.type", "icmpv6.type":
		return "icmp_type"
	case "icmp.code", "icmpv6.code":
		return "icmp_code"
	case "arp.sip":
		return "arp_spa"
	case "arp.tip":
		return "arp_tpa"
	case "arp.op":
		return "arp_op"
	case "arp.sha":
		return "arp_sha"
	case "arp.tha":
		return "arp_tha"
	case "nd.target":
		return "nd_target"
	case "nd.sll":
		return "nd_sll"
	case "nd.tll":
		return "nd_tll"
	case "nd_ext.nd_reserved":
		return "nd_reserved"
	case "nd_ext.nd_options_type":
		return "nd_options_type"
	case "mpls.label", "mpls.tc", "mpls.ttl", "mpls.bos":
		return "mpls_" + field
	case "vlan.vid":
		return "dl_vlan"
	case "vlan.pcp":
		return "dl_vlan_pcp"
	}
	return ""
}

func applySet(p *flow.Packet, c Change) error {
	switch c.Key {
	case "skb_mark":
		return p.SetMasked("pkt_mark", wordOf(c.Args))
	case "skb_priority":
		return p.SetMasked("skb_priority", wordOf(c.Args))
	}
	for _, a := range c.Args {
		var err error
		switch name := fieldOf(c.Key, a.Key); {
		case a.Key == "tos", a.Key == "tclass":
			err = setTOS(p, a.Value)
		case name != "":
			err = p.SetMasked(name, a.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wordOf returns the only argument of an action, which has no key.
func wordOf(list []Argument) string {
	if len(list) == 1 {
		return list[0].Key
	}
	return ""
}

// setTOS sets DSCP and ECN, which a flow shows as two fields, from one byte.
func setTOS(p *flow.Packet, value string) error {
	tos, _ := p.Number("nw_tos")
	ecn, _ := p.Number("nw_ecn")
	var whole flow.Packet
	whole.Set("tos", strconv.FormatUint(tos|ecn, 10))
	if err := whole.SetMasked("tos", value); err != nil {
		return err
	}
	n, ok := whole.Number("tos")
	if !ok {
		return fmt.Errorf("%q is no type of service", value)
	}
	p.Set("nw_tos", strconv.FormatUint(n&^3, 10))
	p.Set("nw_ecn", strconv.FormatUint(n&3, 10))
	return nil
}

// parseChange reads the actions other than set that change headers.
func parseChange(name, args string) (Action, error) {
	c := Change{Name: name, Args: arguments(args)}
	switch name {
	case "push_vlan":
		c.apply = pushVLAN
	case "pop_vlan":
		c.apply = func(p *flow.Packet, _ Change) error { p.PopVLAN(); return nil }
	case "push_eth":
		c.apply = pushEthernet
	case "pop_eth":
		c.apply = func(p *flow.Packet, _ Change) error { p.Delete("dl_src", "dl_dst"); return nil }
	case "push_mpls", "add_mpls":
		c.apply = pushMPLS
	case "pop_mpls":
		c.apply = popMPLS
	default:
		return nil, fmt.Errorf("unknown action %q", name)
	}
	return c, nil
}

func pushVLAN(p *flow.Packet, c Change) error {
	vid := find(c.Args, "vid")
	if vid == "" {
		return fmt.Errorf("push_vlan has no vid")
	}
	pcp := find(c.Args, "pcp")
	if pcp == "" {
		pcp = "0"
	}
	p.PushVLAN(vid, pcp)
	return nil
}

// Apply decrements the packet's TTL; it returns false for a TTL that expires.
func (DecrementTTL) Apply(p *flow.Packet) bool {
	ttl, ok := p.Number("nw_ttl")
	if !ok || ttl < 2 {
		return false
	}
	p.Set("nw_ttl", strconv.FormatUint(ttl-1, 10))
	return true
}

func pushEthernet(p *flow.Packet, c Change) error {
	p.Delete("packet_type")
	p.Set("dl_src", find(c.Args, "src"))
	p.Set("dl_dst", find(c.Args, "dst"))
	return nil
}

// pushMPLS adds an MPLS header below the Ethernet header.
func pushMPLS(p *flow.Packet, c Change) error {
	if find(c.Args, "label") == "" {
		return fmt.Errorf("%s has no label", c.Name)
	}
	kind := "mpls"
	if t, _ := strconv.ParseUint(find(c.Args, "eth_type"), 0, 16); t == 0x8848 {
		kind = "mplsm"
	}
	var header flow.Packet
	for _, a := range c.Args {
		if fieldOf("mpls", a.Key) != "" {
			header.Set(fieldOf("mpls", a.Key), a.Value)
		}
	}
	p.Encapsulate(kind, header)
	return nil
}

func popMPLS(p *flow.Packet, _ Change) error { return p.Decapsulate() }
