package rules

import (
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/pass"
)

// endOf returns where the last pass of a trace ended on the integration bridge, and the
// datapath actions of that pass; nothing where the switch refused the packet.
func endOf(tb testing.TB, l loaded, trace string) (End, string) {
	tb.Helper()
	_, text, _ := strings.Cut(trace, "\n") // without the packet
	passes, err := pass.Parse(text)
	if err != nil && strings.Contains(text, "server returned an error") {
		return End{}, ""
	}
	if err != nil {
		tb.Fatalf("%v\n%s", err, trace)
	}
	last := passes[len(passes)-1]
	stage, ok := last.Last()
	if !ok {
		return End{}, last.ActionsText
	}
	end, err := l.rules.End(last, &stage, "br-int", l.flows[0].Layout)
	if err != nil {
		tb.Fatal(err)
	}
	for _, step := range end.Steps {
		if step.Rule.Words == "" {
			tb.Errorf("a step without a rule: %+v in\n%s", step, trace)
		}
	}
	return end, last.ActionsText
}
