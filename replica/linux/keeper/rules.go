//go:build linux

package keeper

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/iproute"
	"ovs-offline/replica/report"
)

// addRules replaces the kernel's rules of the routing policy by the recorded rules. If no rules of a family were
// recorded, the kernel's rules of that family stay.
func (s *space) addRules() {
	rules := s.recorded.Rules
	s.report.Record(report.PolicyRules, len(rules))
	if len(rules) > maxRules {
		s.report.RejectUnnamed(report.PolicyRules, len(rules)-maxRules, "only the first %d rules are restored", maxRules)
		rules = rules[:maxRules]
	}
	for i, family := range []int{unix.AF_INET, unix.AF_INET6} {
		if s.recorded.HasRules[i] {
			s.dropRules(family)
		}
	}
	for _, rule := range rules {
		if strings.Contains(rule.Text, "l3mdev") {
			s.addVRFRules(rule)
			continue
		}
		r, err := s.netlinkRule(rule)
		if err == nil {
			err = s.handle.RuleAdd(r)
		}
		if err != nil && !isExisting(err) {
			s.report.Reject(report.PolicyRules, ruleText(rule), "%v", err)
			continue
		}
		s.report.Restore(report.PolicyRules, 1) // taken by the kernel, which keeps rules as they are
	}
}

func isExisting(err error) bool { return err == unix.EEXIST }

// dropRules deletes the rules that a new namespace has, but the one that a VRF needs, which the kernel made with it.
func (s *space) dropRules(family int) {
	list, err := s.handle.RuleList(family)
	if err != nil {
		return
	}
	for i := range list {
		if list[i].Priority == vrfPriority && slices.ContainsFunc(s.devices, (*device).isRealVRF) {
			continue
		}
		list[i].Family = family
		_ = s.handle.RuleDel(&list[i])
	}
}

// ruleText returns a rule for the report.
func ruleText(r iproute.Rule) string {
	text := strconv.Itoa(r.Priority) + ": " + r.Text
	if r.IPv6 {
		return "-6 " + text
	}
	return text
}

// netlinkRule reads the text of a rule as ip prints it.
func (s *space) netlinkRule(rule iproute.Rule) (*netlink.Rule, error) {
	r := netlink.NewRule()
	r.Priority, r.Family = rule.Priority, unix.AF_INET
	if rule.IPv6 {
		r.Family = unix.AF_INET6
	}
	words := strings.Fields(rule.Text)
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch word { // words that nothing follows
		case "not":
			r.Invert = true
			continue
		case "unreachable", "blackhole", "prohibit":
			r.Type = uint8(routeType(word))
			continue
		case "nop":
			return nil, fmt.Errorf("rules that do nothing are not restored")
		case "[detached]", "[unresolved]":
			continue
		}
		if len(words) == 0 {
			return nil, fmt.Errorf("nothing follows %q", word)
		}
		value := words[0]
		words = words[1:]
		if err := s.setRule(r, word, value); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// setRule sets what one word of a rule says.
func (s *space) setRule(r *netlink.Rule, word, value string) (err error) {
	switch word {
	case "from", "to":
		if value == "all" {
			return nil
		}
		prefix, err := netip.ParsePrefix(value)
		if addr, notAddress := netip.ParseAddr(value); err != nil && notAddress == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return err
		}
		if word == "from" {
			r.Src = ipNet(prefix)
		} else {
			r.Dst = ipNet(prefix)
		}
	case "lookup", "table":
		r.Table, err = s.tableNumber(value)
	case "fwmark":
		mark, mask, masked := strings.Cut(value, "/")
		r.Mark = uint32(number(mark))
		all := uint32(0xffffffff)
		if masked {
			all = uint32(number(mask))
		}
		r.Mask = &all
	case "iif":
		r.IifName = value
	case "oif":
		r.OifName = value
	case "tos", "dsfield":
		r.Tos = uint(number(value))
	case "goto":
		r.Goto = number(value)
	case "suppress_prefixlength":
		r.SuppressPrefixlen = number(value)
	case "suppress_ifgroup":
		r.SuppressIfgroup = number(value)
	case "ipproto":
		r.IPProto = protocol(value)
		if r.IPProto == 0 {
			return fmt.Errorf("unknown protocol %q", value)
		}
	case "sport", "dport":
		low, high, ranged := strings.Cut(value, "-")
		if !ranged {
			high = low
		}
		ports := netlink.NewRulePortRange(uint16(number(low)), uint16(number(high)))
		if word == "sport" {
			r.Sport = ports
		} else {
			r.Dport = ports
		}
	case "uidrange":
		low, high, _ := strings.Cut(value, "-")
		r.UIDRange = netlink.NewRuleUIDRange(uint32(number(low)), uint32(number(high)))
	case "proto", "protocol":
		r.Protocol = uint8(protocolNumber(value))
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return err
}

// protocol returns the number of a protocol above IP, 0 for an unknown one.
func protocol(name string) int {
	known := map[string]int{"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "dccp": 33, "gre": 47, "esp": 50, "ah": 51, "icmpv6": 58, "ipv6-icmp": 58, "sctp": 132, "udplite": 136}
	if n, ok := known[strings.ToLower(name)]; ok {
		return n
	}
	return number(name)
}
