package openflow

import (
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Entry is one group, meter or TLV mapping of a dump.
type Entry struct {
	Line int
	ID   uint32
	Text string // what ovs-ofctl takes to add it
}

var groupID = regexp.MustCompile(`^group_id=([0-9]+),`)

// Groups returns the groups of an ovs-ofctl dump-groups, and the lines that
// cannot be used.
func Groups(r io.Reader) (groups []Entry, problems []Problem) {
	var bad problemList
	for n, l := range lines(r) {
		text := strings.TrimSpace(l.text)
		switch id := groupID.FindStringSubmatch(text); {
		case l.err != nil || l.tooLong:
			bad.add(newProblem(n, text, "can't be read", true))
		case isHeader(l.text):
		case id != nil:
			groups = append(groups, Entry{Line: n, ID: parseID(id[1]), Text: text})
		default:
			bad.add(notEntry(n, text, "a group"))
		}
	}
	return groups, bad.all()
}

// meterNumber matches a meter's id as ovs-ofctl prints it: by name where
// OpenFlow reserves it.
const meterNumber = `([0-9]+|0x[0-9a-f]+|controller|slowpath)`

// The reserved ids of meters (OpenFlow 1.3, ofp_meter).
const (
	meterSlowpath   = 0xfffffffd
	meterController = 0xfffffffe
)

var meterID = regexp.MustCompile(`^meter=` + meterNumber + `[ ,]`)

// Meters returns the meters of an ovs-ofctl dump-meters, and the lines that
// cannot be used. The dump has a line for each band; an entry's Text joins them.
func Meters(r io.Reader) (meters []Entry, problems []Problem) {
	var bad problemList
	var text strings.Builder // of the last meter
	finish := func() {
		if len(meters) > 0 {
			meters[len(meters)-1].Text = text.String()
		}
		text.Reset()
	}
	separator := ""
	for n, l := range lines(r) {
		line := strings.TrimSpace(l.text)
		switch id := meterID.FindStringSubmatch(line); {
		case l.err != nil || l.tooLong:
			bad.add(newProblem(n, line, "can't be read", true))
		case isHeader(l.text):
		case id != nil:
			finish()
			meters = append(meters, Entry{Line: n, ID: parseID(id[1])})
			text.WriteString(line)
			separator = " "
			if strings.HasSuffix(line, "bands=") {
				separator = ""
			}
		case strings.HasPrefix(line, "type=") && len(meters) > 0:
			text.WriteString(separator + line)
			separator = " "
		default:
			bad.add(notEntry(n, line, "a meter"))
		}
	}
	finish()
	return meters, bad.all()
}

var meterStat = regexp.MustCompile(`^meter:` + meterNumber + ` .*duration:([0-9.]+)s`)

// MeterAges returns the age of each meter in seconds, by id, from an ovs-ofctl
// meter-stats.
func MeterAges(r io.Reader) map[uint32]float64 {
	ages := map[uint32]float64{}
	for _, l := range lines(r) {
		if m := find(meterStat, "duration:", strings.TrimSpace(l.text)); m != nil {
			if age, err := strconv.ParseFloat(m[2], 64); err == nil {
				ages[parseID(m[1])] = age
			}
		}
	}
	return ages
}

// tlvFields is the number of fields tun_metadataN of a switch (TUN_METADATA_NUM_OPTS).
const tlvFields = 64

// TLVMap returns the mappings of an ovs-ofctl dump-tlv-map, and the lines that
// cannot be used. Older versions separate the columns with tabs, and print class
// 0 as "0". An entry's ID is the N of tun_metadataN.
func TLVMap(r io.Reader) (mappings []Entry, problems []Problem) {
	var bad problemList
	for n, l := range lines(r) {
		text := strings.TrimSpace(l.text)
		var col []string
		if len(text) < 200 { // a mapping has a quarter of that
			col = strings.Fields(text)
		}
		switch {
		case l.err != nil || l.tooLong:
			bad.add(newProblem(n, text, "can't be read", true))
		case isHeader(l.text), isTLVHeading(text):
		case len(mappings) == tlvFields:
			bad.add(newProblem(n, text, "more mappings than a switch can hold", true))
		case len(col) == 4 && strings.HasPrefix(col[3], "tun_metadata"):
			mappings = append(mappings, Entry{Line: n, ID: parseID(col[3][len("tun_metadata"):]),
				Text: "{class=" + col[0] + ",type=" + col[1] + ",len=" + col[2] + "}->" + col[3]})
		default:
			bad.add(notEntry(n, text, "a TLV mapping"))
		}
	}
	return mappings, bad.all()
}

// isTLVHeading reports whether a line is one of those above a TLV map.
func isTLVHeading(text string) bool {
	for _, start := range []string{"max option space", "allocated option space", "mapping table", "class", "---"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

func parseID(text string) uint32 {
	switch text {
	case "controller":
		return meterController
	case "slowpath":
		return meterSlowpath
	}
	id, _ := strconv.ParseUint(text, 0, 32) // 0 for a number that is too large
	return uint32(id)
}
