package appctl

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// Bond is a section of bond/show (ofproto/bond.c, bond_print_details).
type Bond struct {
	Name    string
	Mode    string // balance-tcp, balance-slb, active-backup
	LACP    string // off, configured, negotiated
	Active  string // the active member, "" where there is none
	Members map[string]BondMember
}

// BondMember is a member of a bond.
type BondMember struct {
	Enabled   bool
	MayEnable bool  // its link, LACP, BFD and CFM let it carry packets
	Hashes    []int // those for which it carried something since the last rebalancing
}

// bondHashes is the number of hashes of a bond (ofproto/bond.c, BOND_BUCKETS).
const bondHashes = 256

var (
	// bondMember matches "member p1: enabled"; before OVS 2.15 it is "slave p1: enabled".
	bondMember = regexp.MustCompile(`^(?:member|slave) (.*): (enabled|disabled)$`)
	// bondLoad matches "hash 12: 3 kB load".
	bondLoad = regexp.MustCompile(`^hash (\d+): \d+ kB load$`)
)

// Bonds yields the bonds of bond/show.
func Bonds(text string) iter.Seq[Bond] { return each(text, readBond) }

func readBond(name, body string) Bond {
	b := Bond{Name: name, Members: map[string]BondMember{}}
	current, inMember := "", false
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if found := bondMember.FindStringSubmatch(line); found != nil {
			current, inMember = found[1], true
			b.Members[current] = BondMember{Enabled: found[2] == "enabled"}
			continue
		}
		label, value := field(line)
		m := b.Members[current]
		switch {
		case !inMember && label == "bond_mode":
			b.Mode = value
		case !inMember && label == "lacp_status":
			b.LACP = value
		case !inMember:
		case line == "active member" || line == "active slave":
			b.Active = current
		case label == "may_enable":
			m.MayEnable = value == "true"
			b.Members[current] = m
		default:
			if found := bondLoad.FindStringSubmatch(line); found != nil {
				if hash, err := strconv.Atoi(found[1]); err == nil && hash < bondHashes {
					m.Hashes = append(m.Hashes, hash)
					b.Members[current] = m
				}
			}
		}
	}
	return b
}
