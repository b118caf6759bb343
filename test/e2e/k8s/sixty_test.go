package k8s

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/sets"
)

// clusters is how many clusters of three nodes there are. Each node has OVN databases of its
// own. A pod has ten nodes at most: five clusters need a second one.
var clusters = sweep.Count(20, 5)

// TestSixtyReplicas runs commands on sixty replicas, or some of them, in pods and on the same replicas as
// local processes. It is not parallel, since other tests would wait too long beside it.
func TestSixtyReplicas(t *testing.T) {
	c := newClient(t, sixtyNodes(t))
	local := filepath.Join(t.TempDir(), "set")
	if err := run("cp", "-a", c.workdir, local); err != nil {
		t.Fatal(err)
	}
	before := collection(t, c.workdir)
	t.Cleanup(func() { ovsOfflineRun(t, "-w", local, "stop") })
	timed(t, "start in pods", func() { c.mustStart(t) })
	timed(t, "start of processes", func() {
		if r := ovsOfflineRun(t, "-w", local, "start", "--runtime", "process"); r.code != 0 {
			t.Fatalf("start of processes: exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
	})
	c.expectLockedDown(t)
	if found := c.list(t); len(found) != 1 || len(found[0].Nodes) != 3*clusters || found[0].Ready != found[0].Pods {
		t.Errorf("listed: %+v", found)
	}
	c.sameOnSixty(t, local)
	t.Run("as recorded", func(t *testing.T) {
		r := c.on(t, "drift", sets.Copied("worker2", clusters))
		if r.code != 0 || !strings.Contains(r.out, "no drift") {
			t.Errorf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
	})
	last := c
	last.workdir = filepath.Join(c.workdir, sets.Copied("worker3", clusters))
	t.Run("wrapper", func(t *testing.T) { last.wrapper(t) })
	t.Run("standard input", func(t *testing.T) { last.standardInput(t) })
	t.Run("logs", func(t *testing.T) { last.logs(t, filepath.Join(local, filepath.Base(last.workdir))) })
	t.Run("shell", func(t *testing.T) { last.shell(t) })
	timed(t, "stop", func() {
		if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 || len(c.list(t)) > 0 {
			t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
		}
	})
	expectUntouched(t, c.workdir, before)
}

// sixtyNodes returns a folder with the workdirs of all clusters.
func sixtyNodes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	reports, err := sets.Recorded(t, labScript, "kubernetes-ic").Copies(t.Context(), filepath.Join(dir, "reports"),
		clusters)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "set")
	timed(t, "collect", func() {
		if r := ovsOfflineRun(t, slices.Concat([]string{"-w", folder, "collect"}, reports)...); r.code != 0 {
			t.Fatalf("collect: exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
	})
	return folder
}

func timed(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	t.Logf("%s: %.1f s", what, time.Since(began).Seconds())
}

// sameOnSixty runs commands on the set in pods and on that of processes, and compares what
// they print.
func (c client) sameOnSixty(t *testing.T, local string) {
	t.Helper()
	questions := filepath.Join(t.TempDir(), "questions.yaml")
	files.Write(t, questions, questionsToSixty())
	for _, command := range []struct {
		name  string
		args  []string
		lines int // that the output has at least
	}{
		{"status", []string{"status"}, 3 * clusters},
		{"report", []string{"report"}, 3 * clusters},
		{"report as JSON", []string{"report", "-o", "json"}, 3 * clusters},
		{"trace", []string{"trace", sets.Copied("ns1", 4) + "/web-0", sets.Copied("ns2", 4) + "/db-0:5432"}, 5},
		{"traces on all nodes", []string{"trace", "--file", questions, "-o", "json"}, 3 * clusters},
	} {
		t.Run(command.name, func(t *testing.T) {
			lines := c.sameAs(t, local, "", command.args...)
			if lines < command.lines {
				t.Errorf("%d lines", lines)
			}
		})
	}
	t.Run("exec", func(t *testing.T) {
		for number := 1; number <= clusters; number += 3 { // some on each pod
			for _, node := range []string{"worker1", "worker2", "worker3"} {
				c.sameAs(t, local, sets.Copied(node, number), "exec", "ovs-appctl", "ofproto/trace", "br-int", "in_port=2,tcp")
			}
		}
	})
}

// sameAs runs a command on a node, or on the set, in pods and as processes. It returns the
// number of lines that were printed.
func (c client) sameAs(t *testing.T, local, node string, args ...string) (lines int) {
	t.Helper()
	got := ovsOfflineRun(t, append([]string{"-w", filepath.Join(c.workdir, node)}, args...)...)
	want := ovsOfflineRun(t, append([]string{"-w", filepath.Join(local, node)}, args...)...)
	g, w := neutral(reportLines(got.out, c.workdir), c.workdir), neutral(reportLines(want.out, local), local)
	if want.code != 0 || got.code != want.code || g != w {
		t.Errorf("%s: exit %d on pods, %d on processes\n%s\n%s\n%s", node, got.code, want.code, firstDifference(g, w),
			got.complaints, want.complaints)
	}
	return len(strings.Split(w, "\n"))
}

// questionsToSixty returns three questions about each cluster, which meet all its nodes,
// with the verdicts that real packets had on the live nodes.
func questionsToSixty() string {
	var b strings.Builder
	b.WriteString("checks:\n")
	for number := 1; number <= clusters; number++ {
		first, second, third := sets.Copied("ns1", number), sets.Copied("ns2", number), sets.Copied("ns3", number)
		fmt.Fprintf(&b, "- {from: %s/web-0, to: '%s/db-0:5432', expect: reachable}\n", first, second)
		fmt.Fprintf(&b, "- {from: %s/web-1, to: '%s/web-0:9999', protocol: udp, expect: reachable}\n", first, first)
		fmt.Fprintf(&b, "- {from: %s/open-0, to: '%s/db-0:22', expect: unreachable}\n", third, second)
	}
	return b.String()
}
