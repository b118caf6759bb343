package odp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

func parseTrack(args string) (Action, error) {
	var track Track
	for _, argument := range arguments(args) {
		var err error
		switch argument.Key {
		case "commit":
			track.Commit = true
		case "force_commit":
			track.Commit, track.Force = true, true
		case "zone":
			var zone uint64
			zone, err = strconv.ParseUint(argument.Value, 0, 16)
			track.Zone = uint16(zone)
		case "mark":
			track.Mark = argument.Value
		case "label":
			track.Label = argument.Value
		case "helper":
			track.Helper = argument.Value
		case "timeout":
		case "nat":
			track.NAT, err = parseNAT(argument.Value)
		default:
			err = fmt.Errorf("ct has an unknown argument %q", argument.Key)
		}
		if err != nil {
			return nil, err
		}
	}
	return track, nil
}

func parseNAT(args string) (*NAT, error) {
	nat := &NAT{}
	for _, argument := range arguments(args) {
		switch argument.Key {
		case "src":
			nat.Src = true
		case "dst":
			nat.Dst = true
		case "persistent", "hash", "random":
			continue
		default:
			return nil, fmt.Errorf("nat has an unknown argument %q", argument.Key)
		}
		if argument.Value == "" {
			continue
		}
		if err := nat.parseRange(argument.Value); err != nil {
			return nil, err
		}
	}
	return nat, nil
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
