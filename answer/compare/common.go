package compare

import (
	"fmt"
	"io"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// common is how the flows of a bridge are read on both sides, so that they can be compared
// although different commands printed them.
type common struct {
	spelling       openflow.Canonical // of flows, without the ports, which each side numbers
	ofGroups       openflow.Canonical // of groups, likewise
	groups, meters bool               // both sides have the dump, so that content is compared, not numbers
	zone           *zone              // for a side without a southbound database; nil for none
	named          string             // says whose database zone is
	keyless        bool               // the keys of datapaths and ports of one side are unknown
}

// commonOf returns what the dumps of a bridge on both sides have in common, and notes what can't be
// compared because a side lacks it.
func (c *comparer) commonOf(pair *nodePair, bridge string) common {
	var shared common
	version := func(dump workdir.Dump) openflow.Version {
		return openflow.OlderOf(pair.old.dumpVersion(bridge, dump), pair.new.dumpVersion(bridge, dump))
	}
	shared.spelling.Oldest, shared.ofGroups.Oldest = version(workdir.Flows), version(workdir.Groups)
	shared.groups, shared.meters = c.bothHave(pair, bridge, workdir.Groups), c.bothHave(pair, bridge, workdir.Meters)
	old, now := pair.old.dumpVersion(bridge, workdir.Groups).HasBucketProperties(), pair.new.dumpVersion(bridge, workdir.Groups).HasBucketProperties()
	if shared.ofGroups.NoBucketProperties = !old || !now; shared.groups && old != now {
		c.missing(fmt.Sprintf("selection methods and bucket ids of the groups of bridge %s of node %s: a dump in OpenFlow 1.1 to 1.4 does not have them", bridge, pair.new.name))
	}
	sides := []*comparerSide{{pair.old, c.old.name}, {pair.new, c.new.name}}
	for i, side := range sides {
		other := sides[1-i]
		if lacks, has := side.node.zone == nil || side.node.zone.SB == nil, other.node.zone != nil && other.node.zone.SB != nil; lacks && has {
			shared.zone = other.node.zone
			shared.named = fmt.Sprintf("node %s: %s has no OVN SB database: the OVN SB database of %s names the numbers in its flows", pair.new.name, side.name, other.name)
		}
	}
	return shared
}

// comparerSide is a node of one side, with the name of the side.
type comparerSide struct {
	node *capturedNode
	name string
}

// bothHave reports whether both sides have a dump, or the one that has it has no entries.
func (c *comparer) bothHave(pair *nodePair, bridge string, dump workdir.Dump) bool {
	old, now := pair.old.has(bridge, dump), pair.new.has(bridge, dump)
	if old && now {
		return true
	}
	if old && pair.old.hasEntries(bridge, dump) || now && pair.new.hasEntries(bridge, dump) {
		c.missing(fmt.Sprintf("%s of bridge %s of node %s: only one side has them, and flows that use them are compared by their numbers", dump, bridge, pair.new.name))
	}
	return false
}

func (n *capturedNode) has(bridge string, dump workdir.Dump) bool {
	return existing(n.dir.DumpFile(bridge, dump)) != ""
}

func (n *capturedNode) hasEntries(bridge string, dump workdir.Dump) bool {
	read := openflow.Groups
	if dump == workdir.Meters {
		read = openflow.Meters
	}
	list, err := entries(n.dir, n.dir.DumpFile(bridge, dump), read)
	return err != nil || len(list) > 0
}

// dumpVersion returns the version of OpenFlow in which a dump was printed, the zero Version
// if it is not known.
func (n *capturedNode) dumpVersion(bridge string, dump workdir.Dump) openflow.Version {
	path := n.dir.DumpFile(bridge, dump)
	if m, err := n.dir.Manifest(); err == nil {
		if v := openflow.ParseVersion(m.OpenFlow(n.dir.Relative(path))); v != 0 {
			return v
		}
	}
	file, ok, err := n.dir.Collected(path)
	if !ok || err != nil {
		return 0
	}
	defer file.Close()
	return headVersion(file)
}

// headVersion returns the version that the header of a dump names.
func headVersion(f io.Reader) openflow.Version {
	const most = 4096
	head := make([]byte, most)
	n, _ := io.ReadFull(f, head)
	_, v := openflow.Identify([]byte(strings.ToValidUTF8(string(head[:n]), "")))
	return v
}
