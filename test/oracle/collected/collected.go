// Package collected makes workdirs of sos reports, for tests.
package collected

import (
	"path/filepath"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// Report returns a new workdir with what a report holds. It is not locked.
func Report(tb testing.TB, report string) *workdir.Dir {
	tb.Helper()
	wd := lock(tb, report)
	wd.Unlock()
	return wd
}

// Locked works like Report. The workdir is locked until the end of the test.
func Locked(tb testing.TB, report string) *workdir.Dir {
	tb.Helper()
	wd := lock(tb, report)
	tb.Cleanup(wd.Unlock)
	return wd
}

func lock(tb testing.TB, report string) *workdir.Dir {
	tb.Helper()
	wd, err := workdir.Lock(filepath.Join(ovs.Dir(tb), "node"))
	if err != nil {
		tb.Fatal(err)
	}
	if _, _, err := collect.Collect(tb.Context(), wd, collect.SosReport{Path: report}, collect.Options{}); err != nil {
		wd.Unlock()
		tb.Fatal(err)
	}
	return wd
}
