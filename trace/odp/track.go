package odp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

func parseTrack(args string) (Action, error) {
	var t Track
	for _, a := range arguments(args) {
		var err error
		switch a.Key {
		case "commit":
			t.Commit = true
		case "force_commit":
			t.Commit, t.Force = true, true
		case "zone":
			var zone uint64
			zone, err = strconv.ParseUint(a.Value, 0, 16)
			t.Zone = uint16(zone)
		case "mark":
			t.Mark = a.Value
		case "label":
			t.Label = a.Value
		case "helper":
			t.Helper = a.Value
		case "timeout":
		case "nat":
			t.NAT, err = parseNAT(a.Value)
		default:
			err = fmt.Errorf("ct has an unknown argument %q", a.Key)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

func parseNAT(args string) (*NAT, error) {
	n := &NAT{}
	for _, a := range arguments(args) {
		switch a.Key {
		case "src":
			n.Src = true
		case "dst":
			n.Dst = true
		case "persistent", "hash", "random":
			continue
		default:
			return nil, fmt.Errorf("nat has an unknown argument %q", a.Key)
		}
		if a.Value == "" {
			continue
		}
		if err := n.parseRange(a.Value); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// parseRange reads ADDRESS[-ADDRESS][:PORT[-PORT]]. IPv6 addresses with ports are in
// brackets.
func (n *NAT) parseRange(text string) error {
	addresses, ports := text, ""
	if at := strings.LastIndexByte(text, ']'); at >= 0 {
		addresses, ports = text[:at+1], strings.TrimPrefix(text[at+1:], ":")
	} else if strings.Count(text, ":") == 1 {
		addresses, ports, _ = strings.Cut(text, ":")
	}
	low, high, isRange := strings.Cut(addresses, "-")
	if !isRange {
		high = low
	}
	var err error
	if n.Min, err = netip.ParseAddr(strings.Trim(low, "[]")); err == nil {
		n.Max, err = netip.ParseAddr(strings.Trim(high, "[]"))
	}
	if err != nil || ports == "" {
		return err
	}
	low, high, isRange = strings.Cut(ports, "-")
	if !isRange {
		high = low
	}
	first, err := strconv.ParseUint(low, 10, 16)
	if err != nil {
		return err
	}
	last, err := strconv.ParseUint(high, 10, 16)
	n.MinPort, n.MaxPort = uint16(first), uint16(last)
	return err
}
