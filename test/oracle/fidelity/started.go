package fidelity

import (
	"context"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/ovs"
)

// Started starts a replica of the collected data in the workdir at dir. It ends with the test.
func Started(tb testing.TB, dir string) *Replica {
	tb.Helper()
	return StartedIn(tb, "", dir)
}

// StartedIn works like Started, with the programs of a root file system; "" for this host's.
func StartedIn(tb testing.TB, root, dir string) *Replica {
	tb.Helper()
	n, err := AdoptIn(tb.Context(), root, dir, replica.Options{})
	return n.untilEnd(tb, dir, err)
}

// Replayed collects an sos report and starts a replica of it. It ends with the test.
func Replayed(tb testing.TB, report string) *Replica {
	tb.Helper()
	n, err := Replay(tb.Context(), report, ovs.Dir(tb), replica.Options{})
	return n.untilEnd(tb, report, err)
}

func (n *Replica) untilEnd(tb testing.TB, what string, err error) *Replica {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	tb.Cleanup(func() { // the test's own context has ended by then
		if err := n.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return n
}

// NeedScratch skips a test that runs OVN's programs on copies of databases, where they are
// missing or have no namespaces.
func NeedScratch(tb testing.TB) {
	tb.Helper()
	ovs.Need(tb, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd", "ovn-nbctl", "unshare", "xz")
	if isolated, why := process.New(process.Options{}).Isolated(tb.Context()); !isolated {
		tb.Skip(why)
	}
}
