package appctl

import (
	"iter"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// LearnedMAC is a line of fdb/show (ofproto/ofproto-dpif.c, ofproto_unixctl_fdb_show).
type LearnedMAC struct {
	Port string // OpenFlow port number, or LOCAL
	VLAN string
	MAC  string
}

var learnedMAC = lazyregexp.New(`^(\d+|LOCAL)\s+(\d+)\s+([0-9a-f:]{17})(\s|$)`)

// LearnedMACs yields the entries of fdb/show.
func LearnedMACs(text string) iter.Seq[LearnedMAC] {
	return each(text, learnedMAC, func(found []string, _ string) LearnedMAC { return LearnedMAC{found[1], found[2], found[3]} })
}

// fdbHeader matches the first line of fdb/show of several bridges, which names the bridge of each entry
// since Open vSwitch 4.0.
var fdbHeader = lazyregexp.New(`^ Bridge +( Port  VLAN  MAC +Age)`)

// SplitFDB returns the entries of each bridge in the output of fdb/show of several bridges, as fdb/show
// prints those of one; nil for another text. The name of a bridge is in its first line alone.
func SplitFDB(text string) map[string]string {
	header, rest, _ := strings.Cut(text, "\n")
	found := fdbHeader.FindStringSubmatchIndex(header)
	if found == nil {
		return nil
	}
	entries, bridge := map[string][]string{}, ""
	for line := range strings.Lines(rest) {
		name, entry := strings.TrimSpace(line), ""
		if column := found[2]; len(line) > column {
			name, entry = strings.TrimSpace(line[:column]), line[column:]
		}
		if name != "" {
			bridge = name
			entries[bridge] = []string{header[found[2]:], "\n"}
		}
		if bridge != "" {
			entries[bridge] = append(entries[bridge], entry)
		}
	}
	all := map[string]string{}
	for bridge, lines := range entries {
		all[bridge] = strings.Join(lines, "")
	}
	return all
}
