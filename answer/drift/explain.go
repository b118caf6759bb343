package drift

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// explain adds to the differences what else was recorded about their flows.
func (c *comparison) explain(ctx context.Context) error {
	n, report := c.node, c.report
	report.Unread = len(n.lost)
	if report.Unread > 0 && report.Verdict != Undetermined {
		report.undetermined(fmt.Sprintf("%s of the recorded dumps can't be used, so what is missing may have been there: %s", phrase.Count(len(n.lost), "line"), n.lost[0]))
	}
	if len(report.Missing)+len(report.Extra)+len(report.Altered) == 0 {
		return nil
	}
	if err := c.remarkBehind(); err != nil {
		return err
	}
	c.countPackets()
	return c.findDatapathFlows(ctx)
}

// remarkBehind remarks that the SB database has changes that ovn-controller had not yet installed, and doubts a database that lacks
// changes that it had. It writes the nb_cfg of the SB database to its bridge when it has installed the flows.
func (c *comparison) remarkBehind() error {
	for row, err := range c.sb.Rows("SB_Global", "nb_cfg") {
		if err != nil {
			return err
		}
		switch config, known := row.Int("nb_cfg"); {
		case c.node.seen == 0 || !known:
		case c.node.seen < config:
			c.report.Behind = config - c.node.seen
			c.report.Remarks = append(c.report.Remarks, fmt.Sprintf(
				"the SB database has nb_cfg %d, and the node's ovn-controller had installed the flows of %d: differences may have been changes on their way", config, c.node.seen))
		case c.node.seen > config:
			c.report.Doubts = append(c.report.Doubts, fmt.Sprintf(
				"the SB database is older than the flows: it has nb_cfg %d, and the node's ovn-controller had installed the flows of %d", config, c.node.seen))
		}
	}
	return nil
}

// countPackets adds how many packets the recorded flows matched that are extra or altered.
func (c *comparison) countPackets() {
	wanted := map[int]*Entry{}
	for _, list := range [][]Difference{c.report.Extra, c.report.Altered} {
		for i := range list {
			for k := range list[i].Entries {
				if e := &list[i].Entries[k]; e.Kind == flowdiff.KindFlow {
					wanted[e.Line] = e
				}
			}
		}
	}
	for _, f := range c.node.state.Flows {
		if e := wanted[f.Line]; e != nil && f.Counted {
			e.Packets = strconv.FormatUint(f.Packets, 10)
		}
	}
}

// findDatapathFlows adds the recorded flows of the datapath that name the cookie of a stale
// flow: only datapath flows that send packets to ovn-controller name one.
func (c *comparison) findDatapathFlows(ctx context.Context) error {
	stale := map[uint64][]*Entry{}
	for i := range c.report.Extra {
		d := &c.report.Extra[i]
		for k := range d.Entries {
			if e := &d.Entries[k]; d.Stale && e.Kind == flowdiff.KindFlow {
				cookie := openflow.Flow{Text: e.Recorded}.Key().Cookie
				stale[cookie] = append(stale[cookie], e)
			}
		}
	}
	delete(stale, 0)
	file, err := os.Open(c.node.wd.Recorded(workdir.RecordedDatapathFlows))
	if err != nil || len(stale) == 0 {
		return nil // without them there is nothing to add
	}
	defer file.Close()
	scanner := bufio.NewScanner(interrupt.Reader(ctx, file))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		for _, m := range ruleCookie.FindAllStringSubmatch(scanner.Text(), -1) {
			cookie, _ := strconv.ParseUint(m[1], 0, 64)
			for _, e := range stale[cookie] {
				e.Datapath = append(e.Datapath, strings.TrimSpace(scanner.Text()))
			}
		}
	}
	return ctx.Err()
}

var ruleCookie = lazyregexp.New(`\brule_cookie=(0x[0-9a-f]+)`)
