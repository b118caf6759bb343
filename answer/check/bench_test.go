package check_test

import (
	"os"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/choose"
	"ovs-offline/snapshot"
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
		if _, err := check.Run(b.Context(), snapshot.Of(wd), check.Options{Programs: rule.Programs{Runtime: choose.Process, Runtimes: choose.Finder("test")}}); err != nil {
			b.Fatal(err)
		}
	}
}
