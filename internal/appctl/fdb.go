package appctl

import (
	"iter"
	"regexp"
)

// LearnedMAC is a line of fdb/show (ofproto/ofproto-dpif.c, ofproto_unixctl_fdb_show).
type LearnedMAC struct {
	Port string // OpenFlow port number, or LOCAL
	VLAN string
	MAC  string
}

var learnedMAC = regexp.MustCompile(`^(\d+|LOCAL)\s+(\d+)\s+([0-9a-f:]{17})(\s|$)`)

// LearnedMACs yields the entries of fdb/show.
func LearnedMACs(text string) iter.Seq[LearnedMAC] {
	return each(text, learnedMAC, func(found []string, _ string) LearnedMAC { return LearnedMAC{found[1], found[2], found[3]} })
}
