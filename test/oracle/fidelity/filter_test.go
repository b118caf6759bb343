package fidelity

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/test/oracle/trace"
	"ovs-offline/workdir"
)

// filtered makes daemons run as where namespaces are forbidden.
func filtered() process.Options { return process.Options{NoNamespaces: true} }

// TestCapturesReplayUnderFilter compares replicas whose daemons run under the seccomp
// filter with live nodes.
func TestCapturesReplayUnderFilter(t *testing.T) {
	needTools(t)
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		t.Run(name, func(t *testing.T) {
			r, err := Capture(context.Background(), "../../../testdata/captures/"+name, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
			if err != nil {
				t.Fatal(err)
			}
			n, err := ReplayIn(context.Background(), r.Report, wd, process.New(filtered()), replica.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer stop(t, n)
			if f := compare(t, n, r); f.Results != f.Packets {
				t.Errorf("the result lines of %d packets differ", f.Packets-f.Results)
			}
			checkComplete(t, n)
		})
	}
}

func stop(t *testing.T, n *Replica) {
	t.Helper()
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestFilterChangesNoTrace traces the packets of the lab's sets on each node's replica, in
// namespaces and under the seccomp filter. The nodes have no sFlow and no IPFIX. Their
// tunnels are native, so that traces depend on routes and addresses. Outside of a sweep, it traces some packets on one
// node of each set: the nodes of a set are set up alike.
func TestFilterChangesNoTrace(t *testing.T) {
	needTools(t, "ovn-northd", "ovn-controller", "unshare")
	if !process.New(process.Options{}).HasLoopback(t.Context()) {
		t.Skip("daemons get no network namespaces here")
	}
	// TestCapturesReplayUnderFilter has a node of openstack.
	for _, name := range sweep.Rows(sets.Names(), func(name string) bool { return name != "openstack" }) {
		t.Run(name, func(t *testing.T) {
			s := sets.Recorded(t, lab, name)
			folders, err := s.Workdirs(t.Context(), t.TempDir(), sets.Native)
			if err != nil {
				t.Fatal(err)
			}
			tunnels := 0
			s.Packets = sweep.Spread(s.Packets, 40)
			for _, node := range sweep.Spread(s.Nodes, 1) {
				want, inNamespaces := tracesOf(t, s, folders[node], process.Options{})
				have, underFilter := tracesOf(t, s, folders[node], filtered())
				for i, text := range want {
					if c := trace.Compare(text, have[i]); !c.Whole {
						t.Errorf("%s: packet %d: %s", node, s.Packets[i].ID, c.First)
					}
					tunnels += strings.Count(text, "tnl_push(")
				}
				if !reflect.DeepEqual(inNamespaces.Steps, underFilter.Steps) ||
					!slices.Equal(inNamespaces.Remarks, underFilter.Remarks) {
					t.Errorf("%s: under the filter the report is %+v %q, in namespaces %+v %q", node, underFilter.Steps,
						underFilter.Remarks, inNamespaces.Steps, inNamespaces.Remarks)
				}
			}
			t.Logf("%d packets on each of %d nodes, %d times into tunnels", len(s.Packets), len(sweep.Spread(s.Nodes, 1)),
				tunnels)
			if tunnels == 0 {
				t.Error("no packet goes into a tunnel")
			}
		})
	}
}

// tracesOf starts a replica, traces the packets of a set on its integration bridge, and
// ends it. A packet that another node got is a packet from some port here.
func tracesOf(t *testing.T, s *sets.Set, folder string, options process.Options) ([]string, *report.Report) {
	t.Helper()
	wd, err := workdir.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	n := &Replica{Workdir: wd, runtime: process.New(options)}
	defer stop(t, n)
	if err := n.Restart(t.Context(), replica.Options{}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range s.Packets {
		text, err := n.Tool(t.Context(), "ovs-appctl", "ofproto/trace", "--names", "br-int", p.Flow)
		if err != nil || !strings.Contains(text, "Datapath actions:") {
			t.Fatalf("packet %d: %v %s", p.ID, err, text)
		}
		texts = append(texts, text)
	}
	return texts, n.Report
}
