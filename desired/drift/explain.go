package drift

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// explain adds to the differences what else was recorded about them.
func (c *comparison) explain(ctx context.Context) error {
	n, r := c.node, c.report
	if len(n.lost) > 0 && r.Verdict != Undetermined {
		r.undetermined(fmt.Sprintf("%s of the recorded dumps can't be used, so what is missing may have been there: %s", count(len(n.lost), "line"), n.lost[0]))
	}
	if len(r.Missing)+len(r.Extra)+len(r.Altered) == 0 {
		return nil
	}
	if err := c.remarkBehind(); err != nil {
		return err
	}
	if err := c.countPackets(ctx); err != nil {
		return err
	}
	return c.findDatapathFlows(ctx)
}

// remarkBehind remarks that ovn-controller had not yet installed what the SB database says.
// It writes the nb_cfg of the SB database to its bridge when it has installed the flows.
func (c *comparison) remarkBehind() error {
	for row, err := range c.sb.Rows("SB_Global", "nb_cfg") {
		if err != nil {
			return err
		}
		if config, _ := row.Int("nb_cfg"); c.node.seen != 0 && c.node.seen < config {
			c.report.Remarks = append(c.report.Remarks, fmt.Sprintf(
				"the SB database has nb_cfg %d, and the node's ovn-controller had installed the flows of %d: differences may have been changes on their way", config, c.node.seen))
		}
	}
	return nil
}

var packets = regexp.MustCompile(`\bn_packets=([0-9]+)`)

// countPackets reads how many packets the recorded flows matched that are extra or altered.
func (c *comparison) countPackets(ctx context.Context) error {
	f, ok, err := workdir.OpenCollected(c.node.wd.DumpFile(c.node.bridge, workdir.Flows))
	if err != nil || !ok {
		return err
	}
	defer f.Close()
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
	scanner := bufio.NewReader(interrupt.Reader(ctx, f))
	for number := 1; len(wanted) > 0; number++ {
		line, err := scanner.ReadString('\n')
		if e := wanted[number]; e != nil {
			if m := packets.FindStringSubmatch(line); m != nil {
				e.Packets = m[1]
			}
			delete(wanted, number)
		}
		if err != nil {
			break // the counters are only an addition
		}
	}
	return ctx.Err()
}

// findDatapathFlows adds the recorded flows of the datapath that name the cookie of a stale
// flow: those that send packets to ovn-controller do. Of others it is not known from which
// flows they were made.
func (c *comparison) findDatapathFlows(ctx context.Context) error {
	stale := map[string][]*Entry{}
	for i := range c.report.Extra {
		d := &c.report.Extra[i]
		for k := range d.Entries {
			if e := &d.Entries[k]; d.Stale && e.Kind == flowdiff.KindFlow {
				cookie, _ := openflow.Flow{Text: e.Recorded}.Identity()
				stale[cookie] = append(stale[cookie], e)
			}
		}
	}
	delete(stale, "")
	f, err := os.Open(c.node.wd.Recorded(workdir.RecordedDatapathFlows))
	if err != nil || len(stale) == 0 {
		return nil // without them there is nothing to add
	}
	defer f.Close()
	scanner := bufio.NewScanner(interrupt.Reader(ctx, f))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		for _, m := range ruleCookie.FindAllStringSubmatch(scanner.Text(), -1) {
			for _, e := range stale[m[1]] {
				e.Datapath = append(e.Datapath, strings.TrimSpace(scanner.Text()))
			}
		}
	}
	return ctx.Err()
}

var ruleCookie = regexp.MustCompile(`\brule_cookie=(0x[0-9a-f]+)`)
