package appctl

import (
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// DatapathStats are the numbers of dpctl/show (lib/dpctl.c, show_dpif).
type DatapathStats struct {
	Name              string // "system@ovs-system", "" where the heading was cut off
	Hit, Missed, Lost uint64
	Flows             uint64
	Masks             uint64
	PerMatch          float64 // masks that a lookup tried on average
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
	Datapath string
	Current  uint64 // flows
	Limit    uint64
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
