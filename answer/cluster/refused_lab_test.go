package cluster_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/answer/cluster"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// TestLeaderWaitsForARefusedAnswer has a leader that hears of a later term while it adds a server, and is elected again
// before that server answers. Another server may be elected, or the answer may come earlier: then it is tried again.
func TestLeaderWaitsForARefusedAnswer(t *testing.T) {
	sweep.Only(t, "the row of TestStatusesAlone with what was printed then")
	for range 20 {
		if repaired(t) {
			return
		}
	}
	t.Skip("no leader waited for a refused answer: the installed Open vSwitch may not have the defect")
}

// repaired reports whether a leader waited for an answer that it had refused, and the report's repair ended that.
func repaired(t *testing.T) bool {
	l := &lab{Cluster: ovs.StartCluster(t, 3, "OVN_Northbound", ovs.NBSchema), t: t}
	l.write(l.Leader(), 3)
	leader := l.Leader()
	joining := l.Add()
	joining.Join(leader.Address)
	claim := l.laterTerm(leader, l.Other(leader))
	l.asks(joining, leader)
	joining.Signal(syscall.SIGSTOP)
	leader.Signal(syscall.SIGCONT)
	isAdding := l.within(func() bool { return strings.Contains(leader.Log(), "starting to add server") })
	claim()
	leads := l.within(func() bool { return strings.Contains(leader.Status(), "Leader: self") })
	joining.Signal(syscall.SIGCONT)
	waits := isAdding && leads && l.within(func() bool { return strings.Contains(leader.Log(), "failed (in progress)") })
	if !waits || strings.Contains(joining.Status(), "Status: cluster member") {
		return false
	}
	p := l.one(l.examine(l.collect(l.Members, l.Members...)), cluster.StuckJoining)
	l.says(p, joining.Address, "lost the leadership meanwhile, and waits in term", "for an answer that it has refused")
	l.repair(p)
	l.serves(l.Members...)
	return true
}

// within reports whether a condition holds within five seconds.
func (l *lab) within(holds func() bool) bool {
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	return ovs.Until(ctx, "what may not come", holds) == nil
}

// asks starts a server that joins, while the leader does not run, and returns when it is connected with it:
// nothing shows that its request is on its way.
func (l *lab) asks(joining, leader *ovs.Member) {
	l.t.Helper()
	leader.Signal(syscall.SIGSTOP)
	joining.Start()
	l.Wait("the server is connected with the leader", func() bool {
		return strings.Contains(joining.Log(), leader.Address+": connected")
	})
}

// laterTerm connects with the leader as another member does (ovsdb/raft-rpc.h), and returns the function that tells it
// of term 99.
func (l *lab) laterTerm(leader, as *ovs.Member) (tell func()) {
	l.t.Helper()
	of := func(m *ovs.Member, what string) string {
		out, err := m.Appctl("cluster/"+what, "OVN_Northbound")
		if err != nil {
			l.t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	conn, err := net.Dial("unix", strings.TrimPrefix(leader.Address, "unix:"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	send := func(method, fields string) {
		l.t.Helper()
		if _, err := fmt.Fprintf(conn, `{"method":%q,"params":[{%s}],"id":null}`, method, fields); err != nil {
			l.t.Fatal(err)
		}
	}
	header := fmt.Sprintf(`"cluster":%q,"from":%q,"to":%q`, of(as, "cid"), of(as, "sid"), of(leader, "sid"))
	send("hello_request", fmt.Sprintf(`%s,"address":%q`, header, as.Address))
	return func() {
		send("append_reply", header+`,"term":99,"log_end":1,"prev_log_index":1,"prev_log_term":1,"n_entries":0,"result":"OK"`)
	}
}
