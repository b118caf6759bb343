package openflow

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Kind is the command whose output a text is.
type Kind string

// The kinds, named as the commands that print them.
const (
	KindFlows       Kind = "dump-flows"
	KindGroups      Kind = "dump-groups"
	KindMeters      Kind = "dump-meters"
	KindTLVMap      Kind = "dump-tlv-map"
	KindShow        Kind = "show"
	KindBridgeFlows Kind = "bridge.dump-flows"
	KindPorts       Kind = "dump-ports-desc"
	KindPortStats   Kind = "dump-ports"
	KindTables      Kind = "dump-tables"
)

// headline matches the first line of a reply: "OFPST_FLOW reply (OF1.3) (xid=0x2):".
var headline = lazyregexp.New(`^(NXST|OFPST|NXT|OFPT)_(FLOW|GROUP_DESC|METER_CONFIG|TLV_TABLE_REPLY|FEATURES_REPLY|PORT_DESC|PORT|TABLE)(?: reply)? \((?:OF(1\.[0-5])|xid=[^)]*)\)`)

// withoutHeader are the lines of dumps without a header, as ovs-save writes them.
var withoutHeader = []struct {
	kind    Kind
	pattern *lazyregexp.Regexp
}{
	{KindBridgeFlows, lazyregexp.New(`^(?:table_id=\d+, )?duration=\d+s, n_packets=\d+, n_bytes=\d+, .*actions=`)},
	{KindFlows, lazyregexp.New(`^(?:cookie=0x[0-9a-f]+, |table=\d+|priority=\d+[, ]).*actions=`)},
	{KindGroups, lazyregexp.New(`^group_id=\d+,type=`)},
	{KindMeters, lazyregexp.New(`^meter=\d+ .*bands=`)},
}

// Identify returns the kind of a text by its first lines, and the OpenFlow version that
// its header names. The kind is "" for any other text. A few warnings may precede the
// dump.
func Identify(text []byte) (Kind, Version) {
	const maxWarnings = 16 // lines
	warnings := 0
	for line := range strings.Lines(string(text[:min(len(text), 64<<10)])) {
		if warnings++; warnings > maxWarnings {
			break
		}
		line = strings.TrimSpace(line)
		if m := headline.FindStringSubmatch(line); m != nil {
			return kindOf[m[2]], versionOf(m[3])
		}
		for _, w := range withoutHeader {
			if w.pattern.MatchString(line) {
				return w.kind, 0
			}
		}
	}
	return "", 0
}

// kindOf is the kind of a reply by the message that its headline names.
var kindOf = map[string]Kind{
	"FLOW":            KindFlows,
	"PORT_DESC":       KindPorts,
	"PORT":            KindPortStats,
	"TABLE":           KindTables,
	"GROUP_DESC":      KindGroups,
	"METER_CONFIG":    KindMeters,
	"TLV_TABLE_REPLY": KindTLVMap,
	"FEATURES_REPLY":  KindShow,
}

// versionOf returns the version for the notation of a header, such as "1.3". A header
// of OpenFlow 1.0 has no version.
func versionOf(text string) Version {
	if text == "" {
		return OpenFlow10
	}
	return ParseVersion("OpenFlow" + strings.ReplaceAll(text, ".", ""))
}
