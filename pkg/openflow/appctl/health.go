package appctl

import (
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// DatapathStats are the numbers of dpctl/show (lib/dpctl.c, show_dpif).
type DatapathStats struct {
	Name     string  `json:"name,omitempty"` // "system@ovs-system", "" where the heading was cut off
	Hit      uint64  `json:"hit"`            // packets that a flow of the datapath matched
	Missed   uint64  `json:"missed"`         // packets that ovs-vswitchd got
	Lost     uint64  `json:"lost"`           // packets that ovs-vswitchd should have got, and did not
	Flows    uint64  `json:"flows"`
	Masks    uint64  `json:"masks"`
	PerMatch float64 `json:"masks_per_packet"` // masks that a lookup tried on average
}

var (
	datapathLine = lazyregexp.New(`^(\S+@\S+):$`)
	lookups      = lazyregexp.New(`^lookups: hit:(\d+) missed:(\d+) lost:(\d+)`)
	flowCount    = lazyregexp.New(`^flows: (\d+)`)
	maskCount    = lazyregexp.New(`^masks: hit:\d+ total:(\d+) hit/pkt:([0-9.]+)`)
)

// Datapaths reads dpctl/show, also with -s.
func Datapaths(text string) (all []DatapathStats) {
	last := func() *DatapathStats {
		if len(all) == 0 {
			all = append(all, DatapathStats{})
		}
		return &all[len(all)-1]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := datapathLine.FindStringSubmatch(line); found != nil {
			all = append(all, DatapathStats{Name: found[1]})
		} else if found := lookups.FindStringSubmatch(line); found != nil {
			d := last()
			d.Hit, d.Missed, d.Lost = count(found[1]), count(found[2]), count(found[3])
		} else if found := flowCount.FindStringSubmatch(line); found != nil {
			last().Flows = count(found[1])
		} else if found := maskCount.FindStringSubmatch(line); found != nil {
			d := last()
			d.Masks = count(found[1])
			d.PerMatch, _ = strconv.ParseFloat(found[2], 64)
		}
	}
	return all
}

// count returns a number of digits, 0 for one that is too large.
func count(digits string) uint64 {
	n, _ := strconv.ParseUint(digits, 10, 64)
	return n
}

// UpcallStats are the numbers of upcall/show for a datapath (ofproto/ofproto-dpif-upcall.c,
// upcall_unixctl_show).
type UpcallStats struct {
	Datapath string `json:"datapath"`
	Current  uint64 `json:"flows"`
	Limit    uint64 `json:"limit"`
}

// upcallFlows matches "  flows         : (current 96) (avg 90) (max 200) (limit 200000)".
var upcallFlows = lazyregexp.New(`^flows\s*: \(current (\d+)\) .*\(limit (\d+)\)`)

// Upcalls reads upcall/show.
func Upcalls(text string) (all []UpcallStats) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := datapathLine.FindStringSubmatch(line); found != nil {
			all = append(all, UpcallStats{Datapath: found[1]})
		} else if found := upcallFlows.FindStringSubmatch(line); found != nil && len(all) > 0 {
			all[len(all)-1].Current, all[len(all)-1].Limit = count(found[1]), count(found[2])
		}
	}
	return all
}

// counted matches "upcall_flow_limit_hit  0.0/sec  0.000/sec  0.0000/sec   total: 12" (lib/coverage.c, coverage_read).
var counted = lazyregexp.New(`(?m)^(\w+)\s+[0-9.]+/sec\s.*total: (\d+)\s*$`)

// Coverage reads coverage/show: how often each event happened since the daemon was started. Events that never happened are
// not printed.
func Coverage(text string) map[string]uint64 {
	events := map[string]uint64{}
	for _, found := range counted.FindAllStringSubmatch(text, -1) {
		events[found[1]] = count(found[2])
	}
	return events
}

// fdbEntries matches the line of fdb/stats-show with the number of entries and the size of the table.
var fdbEntries = lazyregexp.New(`Current/maximum MAC entries in the table: (\d+)/(\d+)`)

// FDBSize reads fdb/stats-show: the number of entries in the table of MAC addresses, and its size. ok is
// false for another text.
func FDBSize(text string) (entries, size int, ok bool) {
	found := fdbEntries.FindStringSubmatch(text)
	if found == nil {
		return 0, 0, false
	}
	return int(count(found[1])), int(count(found[2])), true
}
