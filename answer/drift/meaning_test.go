package drift

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/prove"
	"ovs-offline/internal/show"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// meant is what becomes of packets by planted drift, and what should.
type meant struct{ what, before, after string }

// TestDriftSaysWhatItMeans plants drift, and compares what it means. A real switch with both states has to agree.
func TestDriftSaysWhatItMeans(t *testing.T) {
	worker := openWorker(t)
	all := []meant{{"removed port security", "dropped", "to kube-system/coredns1"},
		{"removed pod's port", "dropped", "to ns1/web1"}}
	for _, m := range sweep.Named(t, all, func(m meant) string { return m.what }, "removed port security") {
		t.Run(m.what, func(t *testing.T) {
			files.Write(t, worker.wd.DumpFile("br-int", workdir.Flows), planted[m.what].apply(t, worker.flows))
			r := check(t, worker.wd, Options{Meaning: time.Hour})
			if r.Meaning == nil || r.Meaning.Asked == 0 || len(r.Meaning.Disagree) > 0 {
				t.Fatalf("%+v", r.Meaning)
			}
			isMeant := func(p prove.Treated) bool { return p.Before == m.before && p.After == m.after }
			if !slices.ContainsFunc(r.Meaning.Packets, isMeant) {
				t.Errorf("no packet is %s that should get %s: %+v", m.before, m.after, r.Meaning.Packets)
			}
			var out strings.Builder
			r.Print(&show.Page{Out: &out}, "", false)
			if !strings.Contains(out.String(), m.before+"; should be: "+m.after) {
				t.Error(out.String())
			}
		})
	}
}
