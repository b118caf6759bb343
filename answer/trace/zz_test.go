package trace

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/ovn/names"
	"ovs-offline/test/oracle/sets"
)

func TestZZ(t *testing.T) {
	recorded := sets.RecordedNamespaces(t, "../../scripts/lab/lab", "kubernetes-host")
	s := openSet(t, startReplicas(t, recorded), nil)
	for _, q := range []struct {
		from, to string
		port     uint16
	}{
		{"external/172.18.0.1", "172.18.0.2:31080", 0},
		{"external/172.18.0.1", "172.18.0.2:31081", 0},
		{"external/10.10.0.1", "10.10.0.3:31087", 0},
		{"ns1/web-0", "172.18.0.2:31081", 0},
		{"ns1/web-0", "172.18.0.2:31083", 0},
		{"ns1/web-1", "svc/ns4/hostapi:80", 0},
		{"node/worker1", "svc/ns3/near:80", 0},
		{"node/worker1", "172.18.0.2:31086", 0},
		{"node/worker1", "external/198.51.100.9", 443},
	} {
		got, err := s.Ask(t.Context(), Between{From: q.from, To: q.to, Question: names.Question{Protocol: "tcp", DstPort: q.port}})
		if err != nil {
			t.Errorf("%s to %s: %v", q.from, q.to, err)
			continue
		}
		var text strings.Builder
		if err := got.Write(&text, answer.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Logf("== %s to %s\n%s", q.from, q.to, text.String())
	}
}
