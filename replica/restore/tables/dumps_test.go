package tables

import (
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// TestAnEntryThatStandsTwiceIsCountedOnce has a meter twice in a dump: the switch refuses the second, and reads back the first.
func TestAnEntryThatStandsTwiceIsCountedOnce(t *testing.T) {
	const meter = "meter=1 kbps bands= type=drop rate=1"
	l := &loaded{table: &table{Tables: &Tables{Report: report.New()}, kind: kind{dump: workdir.Meters}, bridge: Bridge{Name: "br0"}}}
	l.collected = []openflow.Entry{{Line: 2, Text: meter}, {Line: 3, Text: meter}}
	l.running = l.collected[:1]
	l.counts().Collected = len(l.collected)
	l.Report.Reject(report.Item{Bridge: "br0", Dump: workdir.Meters, Line: 3, Text: meter})
	l.compare()
	counts := l.counts()
	expect.Equal(t, []int{counts.Collected, counts.Restored, counts.Rejected, counts.Different}, []int{2, 1, 1, 0}, "collected, restored, rejected, different")
}
