package restore_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// counted counts how often flows or groups are sent.
type counted struct {
	*process.Runtime
	sent atomic.Int64
}

func (c *counted) Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error) {
	if slices.Contains(argv, "add-flows") || slices.Contains(argv, "add-groups") || slices.Contains(argv, "add-meter") {
		c.sent.Add(1)
	}
	return c.Runtime.Tool(ctx, runDir, stdin, argv...)
}

// TestManyRejectedEntriesAreBounded replays dumps with thousands of entries that the switch refuses, or that take a run of
// ovs-ofctl each: the runs are bounded, all entries are counted, a remark says how many were not tried by themselves, and
// what stands apart from the refused ones is restored. Meters are added one by one, and good ones have no bound.
func TestManyRejectedEntriesAreBounded(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=system")
	sos := node.report()
	const flow = " cookie=0x0, duration=1s, table=%d, n_packets=0, n_bytes=0, priority=%%d,ip actions=drop\n"
	const meter = "meter=%s%%d kbps bands=\ntype=%s rate=1000\n"
	many := func(count int, format string) string {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, format, i+1)
		}
		return text.String()
	}
	for _, c := range []struct {
		dump                       workdir.Dump
		head, lines                string
		bad, good, restored, tries int
	}{
		{workdir.Flows, "OFPST_FLOW", many(4000, fmt.Sprintf(flow, 254)) + many(2000, fmt.Sprintf(flow, 0)), 4000, 2000, 1000, 1400},
		{workdir.Meters, "OFPST_METER_CONFIG", many(600, fmt.Sprintf(meter, "", "drop")) +
			many(600, fmt.Sprintf(meter, "9000", "some")), 600, 600, 600, 1150},
	} {
		text := c.head + " reply (OF1.5) (xid=0x2):\n" + c.lines
		path := filepath.Join(sos, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-"+string(c.dump)+"_br0")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rt := &counted{Runtime: process.New(process.Options{})}
		r := replayBy(t, sos, rt, nil)
		counts := *r.report.Bridges[0].Counts[c.dump]
		expect.Equal(t, counts.Collected, c.bad+c.good, c.dump, counts)
		expect.Equal(t, counts.Restored+counts.Rejected, c.bad+c.good, c.dump, counts)
		if counts.Restored < c.restored {
			t.Errorf("%s: of %d good entries %d are restored", c.dump, c.good, counts.Restored)
		}
		if n := rt.sent.Load(); n > int64(c.tries) {
			t.Errorf("%s: sent %d times", c.dump, n)
		}
		if !slices.ContainsFunc(r.report.Remarks, func(remark string) bool {
			return strings.Contains(remark, string(c.dump)+": ") && strings.Contains(remark, "entries were not tried by themselves")
		}) {
			t.Errorf("%s: the remarks are %q", c.dump, r.report.Remarks)
		}
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRejectedEntriesTakeFewRuns checks that a few entries that ovs-ofctl can't
// read, or that the switch rejects, take a few runs of ovs-ofctl, wherever they
// are among thousands.
func TestRejectedEntriesTakeFewRuns(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=system")
	sos := node.report()
	all := sweep.Count(3000, 600)
	bad := []int{3, 17, 18, all / 2, all * 3 / 4, all - 1}
	const flow = " cookie=0x0, duration=1s, table=%d, n_packets=0, n_bytes=0, priority=%%d,%s"
	for _, c := range []struct {
		dump       workdir.Dump
		file, good string
		bad        []string // entries that ovs-ofctl can't read or the switch refuses
	}{
		{workdir.Flows, "dump-flows", fmt.Sprintf(flow, 0, "ip actions=drop"),
			[]string{"ip,priority=%d,nw_src=1.2 actions=drop", fmt.Sprintf(flow, 0, "tcp actions=resubmit(,3),meter:7777777"),
				fmt.Sprintf(flow, 254, "ip actions=drop")}},
		{workdir.Groups, "dump-groups", " group_id=%d,type=all,bucket=bucket_id:0,actions=drop",
			[]string{" group_id=%d,type=some,bucket=bucket_id:0,actions=drop", " group_id=%d,type=indirect"}},
	} {
		for _, line := range sweep.Spread(c.bad, 2) { // one that ovs-ofctl can't read, and one that the switch refuses
			text := map[workdir.Dump]string{workdir.Flows: "OFPST_FLOW", workdir.Groups: "OFPST_GROUP_DESC"}[c.dump] +
				" reply (OF1.5) (xid=0x2):\n"
			for i := range all {
				form := c.good
				if slices.Contains(bad, i) {
					form = line
				}
				text += fmt.Sprintf(form, i+1) + "\n"
			}
			path := filepath.Join(sos, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_"+c.file+"_br0")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			rt := &counted{Runtime: process.New(process.Options{})}
			r := replayBy(t, sos, rt, nil)
			counts := *r.report.Bridges[0].Counts[c.dump]
			expect.Equal(t, counts.Restored, all-len(bad), line, counts)
			expect.Equal(t, counts.Collected, all, line, counts)
			expect.Equal(t, counts.Rejected, len(bad), line, counts)
			if n := int(rt.sent.Load()); n > 4*len(bad) {
				t.Errorf("%s: sent %d times", line, n)
			} else {
				t.Logf("%s: sent %d times for %d bad ones", strings.TrimSpace(line), n, len(bad))
			}
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
