package odp

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func addressOf(list []Argument, keys ...string) netip.Addr {
	for _, key := range keys {
		if address, err := netip.ParseAddr(find(list, key)); err == nil {
			return address
		}
	}
	return netip.Addr{}
}

// parseSetTunnel reads the arguments of set(tunnel(...)).
func parseSetTunnel(args string) (Action, error) {
	list := arguments(args)
	tunnel := Tunnel{ID: find(list, "tun_id"), Src: addressOf(list, "src", "ipv6_src"), Dst: addressOf(list, "dst", "ipv6_dst"), TTL: find(list, "ttl"), TOS: find(list, "tos")}
	for _, kind := range []string{"geneve", "vxlan", "erspan", "gtpu"} {
		if has(list, kind) {
			tunnel.Type = kind
		}
	}
	tunnel.DontFragment = slices.Contains(strings.Split(find(list, "flags"), "|"), "df")
	var err error
	tunnel.Options, tunnel.OptionBytes, err = parseOptions(find(list, "geneve"))
	return SetTunnel{tunnel}, err
}

// parseOptions reads Geneve options: {class=0x102,type=0x80,len=4,0x30004}... size is the
// number of their bytes.
func parseOptions(text string) (options []Option, size int, err error) {
	const header = 4
	for _, part := range strings.Split(text, "{")[min(1, strings.Count(text, "{")):] {
		if part == "" {
			continue
		}
		inner, _, closed := strings.Cut(part, "}")
		if !closed {
			return nil, 0, fmt.Errorf("geneve option %q has no end", part)
		}
		var option Option
		for _, argument := range arguments(inner) {
			switch argument.Key {
			case "class":
				option.Class = argument.Value
			case "type":
				option.Type = argument.Value
			case "len":
				length, _ := strconv.Atoi(argument.Value)
				size += header + length
			default:
				option.Value, _, _ = strings.Cut(argument.Key, "/")
			}
		}
		options = append(options, option)
	}
	return options, size, nil
}

// parsePush reads the arguments of tnl_push(tnl_port(P),header(...),out_port(O)).
func parsePush(args string) (Action, error) {
	list := arguments(args)
	push := PushTunnel{Port: unquote(find(list, "tnl_port")), Out: unquote(find(list, "out_port"))}
	header := arguments(find(list, "header"))
	if push.Port == "" || push.Out == "" || header == nil {
		return nil, fmt.Errorf("tnl_push(%s) is incomplete", args)
	}
	push.Header, _ = strconv.Atoi(find(header, "size"))
	outer := arguments(find(header, "ipv4"))
	if has(header, "ipv6") {
		outer = arguments(find(header, "ipv6"))
	}
	tunnel := Tunnel{Src: addressOf(outer, "src"), Dst: addressOf(outer, "dst"), TTL: find(outer, "ttl"), TOS: find(outer, "tos")}
	if tunnel.TTL == "" {
		tunnel.TTL, tunnel.TOS = find(outer, "hlimit"), find(outer, "tclass")
	}
	err := tunnel.parseHeader(header)
	push.Tunnel = tunnel
	return push, err
}

// parseHeader reads the header of the encapsulating protocol.
func (t *Tunnel) parseHeader(header []Argument) error {
	var err error
	switch {
	case has(header, "geneve"):
		args := arguments(find(header, "geneve"))
		t.Type, t.ID = "geneve", find(args, "vni")
		t.Options, _, err = parseOptions(find(args, "options"))
	case has(header, "vxlan"):
		t.Type, t.ID = "vxlan", find(arguments(find(header, "vxlan")), "vni")
	case has(header, "gre"):
		t.Type, t.ID = "gre", find(arguments(find(header, "gre")), "key")
	default:
		for _, token := range header {
			if !strings.Contains("size type eth ipv4 ipv6 udp", token.Key) {
				return fmt.Errorf("tnl_push has an unknown header %q", token.Key)
			}
		}
	}
	return err
}
