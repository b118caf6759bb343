package odp

import (
	"errors"
	"fmt"
	"strconv"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
)

// Apply changes a packet's headers as the action does.
func (c HeaderChange) Apply(packet *flow.Packet) error { return c.apply(packet, c) }

// parseSet reads the arguments of set.
func parseSet(args string) (Action, error) {
	key, inner, nested := splitCall(args)
	if !nested {
		return nil, fmt.Errorf("set(%s) has no fields", args)
	}
	if key == "tunnel" {
		return parseSetTunnel(inner)
	}
	change := HeaderChange{Name: "set", Key: key, Args: arguments(inner), apply: applySet}
	if key == "skb_mark" || key == "skb_priority" {
		return change, nil
	}
	for _, argument := range change.Args {
		if argument.Key == "proto" || argument.Key == "frag" {
			continue // a set action can't change them
		}
		if fieldOf(key, argument.Key) == "" && argument.Key != "tos" && argument.Key != "tclass" {
			return nil, fmt.Errorf("set(%s) has an unknown field %q", key, argument.Key)
		}
	}
	return change, nil
}

// fieldOf returns the name in a flow of a field in a datapath action, "" if it is not known.
func fieldOf(key, field string) string {
	name, known := openflow.FieldName(key + "." + field)
	if !known {
		return ""
	}
	return name
}

// applySet changes a packet as a set action does.
func applySet(packet *flow.Packet, change HeaderChange) error {
	switch change.Key {
	case "skb_mark":
		return packet.SetMasked("pkt_mark", wordOf(change.Args))
	case "skb_priority":
		return packet.SetMasked("skb_priority", wordOf(change.Args))
	}
	for _, argument := range change.Args {
		var err error
		switch name := fieldOf(change.Key, argument.Key); {
		case argument.Key == "tos", argument.Key == "tclass":
			err = setTOS(packet, argument.Value)
		case name != "":
			err = packet.SetMasked(name, argument.Value)
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
func setTOS(packet *flow.Packet, value string) error {
	tos, _ := packet.Number("nw_tos")
	ecn, _ := packet.Number("nw_ecn")
	var whole flow.Packet
	whole.Set("tos", strconv.FormatUint(tos|ecn, 10))
	if err := whole.SetMasked("tos", value); err != nil {
		return err
	}
	n, ok := whole.Number("tos")
	if !ok {
		return fmt.Errorf("type of service %q is not a number", value)
	}
	packet.Set("nw_tos", strconv.FormatUint(n&^3, 10))
	packet.Set("nw_ecn", strconv.FormatUint(n&3, 10))
	return nil
}

// parseChange reads the actions other than set that change headers.
func parseChange(name, args string) (Action, error) {
	change := HeaderChange{Name: name, Args: arguments(args)}
	switch name {
	case "push_vlan":
		change.apply = pushVLAN
	case "pop_vlan":
		change.apply = func(packet *flow.Packet, _ HeaderChange) error { packet.PopVLAN(); return nil }
	case "push_eth":
		change.apply = pushEthernet
	case "pop_eth":
		change.apply = func(packet *flow.Packet, _ HeaderChange) error { packet.Delete("dl_src", "dl_dst"); return nil }
	case "push_mpls", "add_mpls":
		change.apply = pushMPLS
	case "pop_mpls":
		change.apply = popMPLS
	default:
		return nil, fmt.Errorf("unknown action %q", name)
	}
	return change, nil
}

// pushVLAN adds a VLAN tag.
func pushVLAN(packet *flow.Packet, change HeaderChange) error {
	vid := find(change.Args, "vid")
	if vid == "" {
		return errors.New("push_vlan has no vid")
	}
	pcp := find(change.Args, "pcp")
	if pcp == "" {
		pcp = "0"
	}
	packet.PushVLAN(vid, pcp)
	return nil
}

// Apply decrements the packet's TTL; it returns false for a TTL that expires.
func (DecrementTTL) Apply(packet *flow.Packet) bool {
	ttl, ok := packet.Number("nw_ttl")
	if !ok || ttl < 2 {
		return false
	}
	packet.Set("nw_ttl", strconv.FormatUint(ttl-1, 10))
	return true
}

// pushEthernet adds an Ethernet header.
func pushEthernet(packet *flow.Packet, change HeaderChange) error {
	packet.Delete("packet_type")
	packet.Set("dl_src", find(change.Args, "src"))
	packet.Set("dl_dst", find(change.Args, "dst"))
	return nil
}

// pushMPLS adds an MPLS header below the Ethernet header.
func pushMPLS(packet *flow.Packet, change HeaderChange) error {
	if find(change.Args, "label") == "" {
		return fmt.Errorf("%s has no label", change.Name)
	}
	kind := "mpls"
	if etherType, _ := strconv.ParseUint(find(change.Args, "eth_type"), 0, 16); etherType == 0x8848 {
		kind = "mplsm"
	}
	var header flow.Packet
	for _, argument := range change.Args {
		if fieldOf("mpls", argument.Key) != "" {
			header.Set(fieldOf("mpls", argument.Key), argument.Value)
		}
	}
	packet.Encapsulate(kind, header)
	return nil
}

func popMPLS(packet *flow.Packet, _ HeaderChange) error { return packet.Decapsulate() }
