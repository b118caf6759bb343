package openflow

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
)

// Kind is what a text of ovs-ofctl or ovs-appctl is.
type Kind string

// The kinds, named as the commands that print them.
const (
	KindFlows       Kind = "dump-flows"
	KindGroups      Kind = "dump-groups"
	KindMeters      Kind = "dump-meters"
	KindTLVMap      Kind = "dump-tlv-map"
	KindShow        Kind = "show"
	KindBridgeFlows Kind = "bridge.dump-flows"
)

// headline matches the first line of a reply: "OFPST_FLOW reply (OF1.3) (xid=0x2):".
var headline = regexp.MustCompile(`^(NXST|OFPST|NXT|OFPT)_(FLOW|GROUP_DESC|METER_CONFIG|TLV_TABLE_REPLY|FEATURES_REPLY)(?: reply)? \((?:OF(1\.[0-5])|xid=[^)]*)\)`)

// bare are the lines of dumps without a header, as ovs-save writes them.
var bare = []struct {
	kind    Kind
	pattern *regexp.Regexp
}{
	{KindBridgeFlows, regexp.MustCompile(`^(?:table_id=\d+, )?duration=\d+s, n_packets=\d+, n_bytes=\d+, .*actions=`)},
	{KindFlows, regexp.MustCompile(`^(?:cookie=0x[0-9a-f]+, |table=\d+|priority=\d+[, ]).*actions=`)},
	{KindGroups, regexp.MustCompile(`^group_id=\d+,type=`)},
	{KindMeters, regexp.MustCompile(`^meter=\d+ .*bands=`)},
}

// Identify tells what a text is by its first lines, and its OpenFlow version
// ("OpenFlow13") where they tell it; kind is "" for anything else. It takes
// a warning or two above the text for no part of it.
func Identify(text []byte) (kind Kind, version string) {
	const most = 16 // lines of warnings before the dump
	scanner := bufio.NewScanner(io.LimitReader(bytes.NewReader(text), 64<<10))
	scanner.Buffer(nil, 64<<10)
	for n := 0; n < most && scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if m := headline.FindStringSubmatch(line); m != nil {
			return kindOf(m[2]), versionOf(m[3])
		}
		for _, b := range bare {
			if b.pattern.MatchString(line) {
				return b.kind, ""
			}
		}
	}
	return "", ""
}

func kindOf(message string) Kind {
	switch message {
	case "FLOW":
		return KindFlows
	case "GROUP_DESC":
		return KindGroups
	case "METER_CONFIG":
		return KindMeters
	case "TLV_TABLE_REPLY":
		return KindTLVMap
	default:
		return KindShow
	}
}

// versionOf spells "1.3" as ovs-ofctl's -O takes it. OpenFlow 1.0 has no such word.
func versionOf(text string) string {
	if text == "" {
		return "OpenFlow10"
	}
	return "OpenFlow" + strings.ReplaceAll(text, ".", "")
}
