package rules

import (
	"testing"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// BenchmarkDatabases lets all rules look at the databases of a cluster of 500 nodes with 20,000 pods.
func BenchmarkDatabases(b *testing.B) {
	large := ovndb.Generate(b, ovs.NBSchema, ovs.SBSchema, 20_000, 1000)
	opened := &snapshot.Deployment{}
	for path, index := range map[string]**file.Index{large.NB: &opened.NB, large.SB: &opened.SB} {
		x, err := file.OpenIndex(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		defer x.Close()
		*index = x
	}
	for b.Loop() {
		c := rule.Of([]*snapshot.Deployment{opened}, rule.Programs{})
		found := 0
		for _, r := range All() {
			var err error
			switch count := func(rule.Finding) { found++ }; {
			case r.Case != nil:
				err = r.Case(b.Context(), c, count)
			case r.Deployment != nil:
				err = r.Deployment(b.Context(), c.Deployments[0], count)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(found), "findings")
	}
}
