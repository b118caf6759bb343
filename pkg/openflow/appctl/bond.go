package appctl

import (
	"iter"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Bond is a section of bond/show (ofproto/bond.c, bond_print_details).
type Bond struct {
	Name   string
	Mode   string // balance-tcp, balance-slb, active-backup
	LACP   string // off, configured, negotiated
	Active string // the active member, "" if there is none
	// NoActive is set where the output says that there is no active member.
	NoActive bool
	// Fallback is set for a bond that works as active-backup while its partner speaks no LACP.
	Fallback bool
	Members  map[string]BondMember
}

// BondMember is a member of a bond.
type BondMember struct {
	Enabled   bool
	MayEnable bool  // its link, LACP, BFD and CFM let it carry packets
	Blocked   bool  // they do not
	Hashes    []int // the hashes whose packets it has carried since the last rebalancing
}

// bondMember matches "member p1: enabled"; before OVS 2.15 it is "slave p1: enabled".
var bondMember = lazyregexp.New(`^(?:member|slave) (.*): (enabled|disabled)$`)

// Bonds yields the bonds of bond/show.
func Bonds(text string) iter.Seq[Bond] { return each(text, section, readBond) }

func readBond(found []string, body string) Bond {
	bond := Bond{Name: found[1], Members: map[string]BondMember{}}
	for label, value := range fields(body) {
		switch label {
		case "bond_mode":
			bond.Mode = value
		case "lacp_status":
			bond.LACP = value
		case "lacp_fallback_ab":
			bond.Fallback = value == "true"
		case "active member mac", "active slave mac":
			bond.NoActive = strings.HasSuffix(value, "(none)")
		}
	}
	for found, lines := range parts(body, bondMember) {
		member := BondMember{Enabled: found[2] == "enabled"}
		for label, value := range fields(lines) {
			hash, isHash := strings.CutPrefix(label, "hash ")
			switch {
			case label == "active member" || label == "active slave":
				bond.Active = found[1]
			case label == "may_enable":
				member.MayEnable, member.Blocked = value == "true", value == "false"
			case isHash && strings.HasSuffix(value, " kB load"):
				if n, err := strconv.ParseUint(hash, 10, 8); err == nil { // a bond has 256 (BOND_BUCKETS)
					member.Hashes = append(member.Hashes, int(n))
				}
			}
		}
		bond.Members[found[1]] = member
	}
	bond.NoActive = bond.NoActive && bond.Active == ""
	return bond
}
