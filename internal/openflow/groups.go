package openflow

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Entry is one group, meter or TLV mapping of a dump.
type Entry struct {
	Line int
	ID   uint32
	Text string // what ovs-ofctl takes to make it again
}

var groupID = regexp.MustCompile(`^group_id=([0-9]+),`)

// Groups reads a dump of ovs-ofctl dump-groups.
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
			bad.add(notData(n, text, "a group"))
		}
	}
	return groups, bad.all()
}

// meterNumber is how ovs-ofctl spells a meter's id: those that OpenFlow
// reserves have names.
const meterNumber = `([0-9]+|0x[0-9a-f]+|controller|slowpath)`

// The ids of the meters that have names (OpenFlow 1.3, ofp_meter).
const (
	meterSlowpath   = 0xfffffffd
	meterController = 0xfffffffe
)

var meterID = regexp.MustCompile(`^meter=` + meterNumber + `[ ,]`)

// Meters reads a dump of ovs-ofctl dump-meters, where each band stands on a
// line of its own. The text of a meter is one line again.
func Meters(r io.Reader) (meters []Entry, problems []Problem) {
	var bad problemList
	var text strings.Builder // of the last meter, which may have a million bands
	whole := func() {
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
			whole()
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
			bad.add(notData(n, line, "a meter"))
		}
	}
	whole()
	return meters, bad.all()
}

var meterStat = regexp.MustCompile(`^meter:` + meterNumber + ` .*duration:([0-9.]+)s`)

// MeterAges reads the seconds for which each meter had existed from
// ovs-ofctl meter-stats.
func MeterAges(r io.Reader) map[uint32]float64 {
	ages := map[uint32]float64{}
	for _, l := range lines(r) {
		if m := meterStat.FindStringSubmatch(strings.TrimSpace(l.text)); m != nil {
			if age, err := strconv.ParseFloat(m[2], 64); err == nil {
				ages[parseID(m[1])] = age
			}
		}
	}
	return ages
}

// tlvFields is how many fields tun_metadataN a switch has (TUN_METADATA_NUM_OPTS).
const tlvFields = 64

// TLVMap reads ovs-ofctl dump-tlv-map. Older versions separate the columns with
// tabs, and class 0 prints as "0". An entry's ID is N of tun_metadataN.
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
		case isHeader(l.text), tlvDecoration(text):
		case len(mappings) == tlvFields:
			bad.add(newProblem(n, text, "more mappings than a switch can hold", true))
		case len(col) == 4 && strings.HasPrefix(col[3], "tun_metadata"):
			mappings = append(mappings, Entry{Line: n, ID: parseID(col[3][len("tun_metadata"):]),
				Text: "{class=" + col[0] + ",type=" + col[1] + ",len=" + col[2] + "}->" + col[3]})
		default:
			bad.add(notData(n, text, "a TLV mapping"))
		}
	}
	return mappings, bad.all()
}

func tlvDecoration(text string) bool {
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
	id, _ := strconv.ParseUint(text, 0, 32) // the patterns above admit numbers only; too large a one is 0
	return uint32(id)
}

// HasError tells whether a dump is an error message in place of data: its
// first line that is no header holds one.
func HasError(r io.Reader) bool {
	scanner := bufio.NewScanner(io.LimitReader(r, 64<<10))
	for scanner.Scan() {
		if text := scanner.Text(); !isHeader(text) {
			return !notData(1, text, "").Lost
		}
	}
	return false
}
