package mcp

import (
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/test/check/expect"
)

// TestTrustNamesWhatAReplicaLacks has a report with an entry that was rejected, a file that was not read, and a
// remark: an agent that gets an answer has to know of each.
func TestTrustNamesWhatAReplicaLacks(t *testing.T) {
	var got Trust
	got.addReport(&report.Report{
		Rejected: []report.Item{{Bridge: "br-int", Dump: "flows", Reason: "unknown action",
			Text: "table=0 actions=frob\x1b"}},
		Lost:    []string{"groups of br-ex: cut off"},
		Remarks: []string{"bond0 never settled"},
	})
	expect.Equal(t, got.Examples, []string{`br-int, flows: unknown action: table=0 actions=frob\x1b`}, "rejected entries")
	expect.Equal(t, got.Warnings, []string{"not collected: groups of br-ex: cut off", "bond0 never settled"}, "warnings")
}
