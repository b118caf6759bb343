package iproute

import (
	"net/netip"
	"strconv"
	"strings"
)

// Rule is a rule of the routing policy database (ip-rule(8)).
type Rule struct {
	Priority int
	Text     string // what follows the priority, as ip prints it
	IPv6     bool   // it is one of "ip -6 rule"
}

// Rules reads "ip rule", or with ipv6 "ip -6 rule".
func Rules(text string, ipv6 bool) []Rule {
	var list []Rule
	for line := range strings.Lines(text) {
		priority, rest, ok := strings.Cut(line, ":")
		n, err := strconv.ParseUint(strings.TrimSpace(priority), 10, 32)
		if rest = strings.Join(strings.Fields(rest), " "); ok && err == nil && rest != "" {
			list = append(list, Rule{Priority: int(n), Text: rest, IPv6: ipv6})
		}
	}
	return list
}

// Neighbour is an entry of the neighbour table (ip-neighbour(8)).
type Neighbour struct {
	Address netip.Addr
	Device  string
	MAC     string // "" for one that did not answer
	State   string // "REACHABLE", "STALE", "PERMANENT", "FAILED" ...
}

// Neighbours reads "ip neighbour", of any family.
func Neighbours(text string) []Neighbour {
	var list []Neighbour
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		addr, err := netip.ParseAddr(words[0])
		device := wordAfter(words, "dev")
		if err != nil || device == "" {
			continue
		}
		list = append(list, Neighbour{Address: addr, Device: device, MAC: wordAfter(words, "lladdr"), State: words[len(words)-1]})
	}
	return list
}
