package restore

import (
	"context"
	"regexp"
	"strconv"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

var learned = regexp.MustCompile(`^\s*(\d+|LOCAL)\s+(\d+)\s+([0-9a-f:]{17})\s+`)

// restoreFDB teaches bridges the MAC addresses that the live ones had learned,
// as static entries, which don't age.
func restoreFDB(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		ok, err := n.eachLine(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedFDB), func(line string) error {
			m := learned.FindStringSubmatch(line)
			if m == nil {
				return ctx.Err()
			}
			name, ok := b.portName(m[1])
			if !ok {
				o.Note(report.Unknown, "%s: MAC %s was learned on port %s, which the database doesn't have", b.Name, m[3], m[1])
				return nil
			}
			if _, err := n.appctl(ctx, "fdb/add", b.Name, name, m[2], m[3]); err != nil {
				o.Note(report.Failed, "%s: MAC %s on %q: %v", b.Name, m[3], name, err)
				return ctx.Err()
			}
			o.Note(report.Restored, "")
			return nil
		})
		if err != nil {
			return err
		}
		if !ok {
			o.Note(report.Unknown, "%s: no fdb/show was collected: NORMAL floods", b.Name)
		}
	}
	return nil
}

// portName finds the interface with an OpenFlow port number.
func (b *Bridge) portName(number string) (string, bool) {
	if number == "LOCAL" {
		return b.Name, true
	}
	for _, i := range b.Interfaces() {
		if strconv.Itoa(i.OfPort) == number {
			return i.Name, true
		}
	}
	return "", false
}
