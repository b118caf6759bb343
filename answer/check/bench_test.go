package check_test

import (
	"os"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/local"
	"ovs-offline/workdir"
)

// BenchmarkCheck checks the workdir in $OVS_OFFLINE_LARGE, which the benchmarks of answer/flows write; a
// person may add logs.
func BenchmarkCheck(b *testing.B) {
	folder := os.Getenv("OVS_OFFLINE_LARGE")
	if folder == "" {
		b.Skip("OVS_OFFLINE_LARGE names no workdir of a large node")
	}
	wd, err := workdir.Find(folder)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := check.Run(b.Context(), snapshot.Of(wd),
			check.Options{Programs: rule.Programs{Runtime: process.Name, Runtimes: local.Runtimes}}); err != nil {
			b.Fatal(err)
		}
	}
}
