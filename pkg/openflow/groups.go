package openflow

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Entry is one group, meter or TLV mapping of a dump.
type Entry struct {
	Line int
	ID   uint32
	Text string // what ovs-ofctl takes to add it
}

// readEntries returns the entries of a dump, and the lines that cannot be used.
// parse returns the id of the entry that begins on a line, "" for none, and what the
// line adds to the text of that entry or of the last one.
func readEntries(r io.Reader, what string, parse func(line string) (id, text string, ok bool)) (entries []Entry, problems []Problem) {
	var bad problemList
	var text strings.Builder // of the last entry
	finish := func() {
		if len(entries) > 0 {
			entries[len(entries)-1].Text = text.String()
		}
		text.Reset()
	}
	var end ending
	for n, l := range lines(r) {
		line := strings.TrimSpace(l.text)
		end.see(n, l)
		id, part, ok := parse(line)
		switch {
		case l.err != nil || l.tooLong:
			bad.add(newProblem(n, line, "can't be read", true))
		case isHeader(line):
		case !ok:
			bad.add(notEntry(n, line, what))
		default:
			if id != "" {
				finish()
				entries = append(entries, Entry{Line: n, ID: parseID(id)})
			}
			text.WriteString(part)
		}
	}
	finish()
	if problem := end.cut(); problem != nil {
		bad.add(problem)
		if n := len(entries); n > 0 && entries[n-1].Line > end.begins { // it may have lost its end
			entries = entries[:n-1]
		}
	}
	return entries, bad.all()
}

var groupID = lazyregexp.New(`^group_id=([0-9]+),`)

// Groups returns the groups of an ovs-ofctl dump-groups, and the lines that
// cannot be used.
func Groups(r io.Reader) (groups []Entry, problems []Problem) {
	return readEntries(r, "a group", func(line string) (id, text string, ok bool) {
		if m := groupID.FindStringSubmatch(line); m != nil {
			id = m[1]
		}
		return id, line, id != ""
	})
}

// meterNumber matches a meter's id as ovs-ofctl prints it: by name where
// OpenFlow reserves it.
const meterNumber = `([0-9]+|0x[0-9a-f]+|controller|slowpath)`

// The reserved ids of meters (OpenFlow 1.3, ofp_meter).
const (
	meterSlowpath   = 0xfffffffd
	meterController = 0xfffffffe
)

var meterID = lazyregexp.New(`^meter=` + meterNumber + `[ ,]`)

// Meters returns the meters of an ovs-ofctl dump-meters, and the lines that
// cannot be used. The dump has a line for each band; an entry's Text joins them.
func Meters(r io.Reader) (meters []Entry, problems []Problem) {
	last := "" // the last line of a meter
	return readEntries(r, "a meter", func(line string) (id, text string, ok bool) {
		text = line
		if m := meterID.FindStringSubmatch(line); m != nil {
			id = m[1]
		} else if last == "" || !strings.HasPrefix(line, "type=") {
			return "", "", false
		} else if !strings.HasSuffix(last, "bands=") {
			text = " " + line
		}
		last = line
		return id, text, true
	})
}

var meterStat = lazyregexp.New(`^meter:` + meterNumber + ` .*duration:([0-9.]+)s`)

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

var (
	tlvMapping = lazyregexp.New(`^(\S+)\s+(\S+)\s+(\S+)\s+tun_metadata(\S+)$`)
	tlvHeading = lazyregexp.New(`^(max option space|allocated option space|mapping table|class|---)`)
)

// TLVMap returns the mappings of an ovs-ofctl dump-tlv-map, and the lines that
// cannot be used. Older versions separate the columns with tabs, and print class
// 0 as "0". An entry's ID is the N of tun_metadataN.
func TLVMap(r io.Reader) (mappings []Entry, problems []Problem) {
	const fields = 64 // tun_metadataN of a switch (TUN_METADATA_NUM_OPTS)
	count := 0
	return readEntries(r, "one of the 64 TLV mappings that a switch can hold", func(line string) (id, text string, ok bool) {
		m := tlvMapping.FindStringSubmatch(line)
		if m == nil || count == fields {
			return "", "", tlvHeading.MatchString(line)
		}
		count++
		return m[4], fmt.Sprintf("{class=%s,type=%s,len=%s}->tun_metadata%s", m[1], m[2], m[3], m[4]), true
	})
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
