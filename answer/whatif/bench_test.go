package whatif

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
)

// BenchmarkChange measures changes of a deployment with more than 13,000 logical flows, on
// one of its nodes. The first computation is reported as "first-s".
func BenchmarkChange(b *testing.B) {
	ovs.Need(b, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd",
		"ovn-nbctl")
	folder, err := workdir.Find(ovs.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	dir, err := scratch.Lock(folder)
	if err != nil {
		b.Fatal(err)
	}
	defer scratch.Release(dir)
	rt := process.New(process.Options{Folders: dir.RuntimeFolders()})
	d := ovndb.NewDeployment(b, ovs.NBSchema, ovs.SBSchema, ovs.Schema)
	began := time.Now()
	s, err := Open(b.Context(), Options{Dir: dir, Runtime: rt, NB: d.NB, SB: d.SB,
		Nodes: []snapshot.Member{{Name: "worker", Dir: worker(b, d.OVS)}}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	first := time.Since(began)
	logical := 0
	for range s.now.sb.Rows("Logical_Flow", "priority") {
		logical++
	}
	i, spent := 0, processorTime(b, dir)
	for b.Loop() {
		i++
		r, err := s.Apply(b.Context(), Change{{"acl-add", "sw0", "to-lport", strconv.Itoa(2000 + i),
			`outport == "pod-0-1" && ip4`, "drop"}})
		if err != nil {
			b.Fatal(err)
		}
		if r.Nodes[0].Equal() {
			b.Fatal("nothing changed")
		}
	}
	b.ReportMetric((processorTime(b, dir)-spent)/float64(i), "cpu-s/op") // other work on the machine makes the rest slower
	b.ReportMetric(first.Seconds(), "first-s")
	b.ReportMetric(float64(logical), "logical-flows")
	b.ReportMetric(float64(len(s.now.states["worker"].Flows)), "flows")
	for _, program := range []string{"ovn-controller", "ovn-northd", "ovs-vswitchd"} {
		b.ReportMetric(float64(resident(b, dir, program))/1024, program+"-MB")
	}
}

// processorTime returns the seconds of processor time of the daemons, of this process and of
// the tools that it has run.
func processorTime(b *testing.B, dir *workdir.Dir) (seconds float64) {
	b.Helper()
	const ticks = 100 // of a second, in /proc/PID/stat
	pids, err := filepath.Glob(filepath.Join(dir.VarRuns(), "*", "*.pid"))
	if err != nil || len(pids) == 0 {
		b.Fatal(pids, err)
	}
	for _, path := range append(pids, "") {
		process := "self"
		if path != "" {
			text, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			process = strings.TrimSpace(string(text))
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", process))
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		for _, field := range strings.Fields(rest)[11:15] { // utime, stime, and those of children
			n, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			seconds += float64(n) / ticks
		}
	}
	return seconds
}

var rss = regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`)

// resident returns the memory of a daemon in KiB.
func resident(b *testing.B, dir *workdir.Dir, program string) int {
	b.Helper()
	pids, err := filepath.Glob(filepath.Join(dir.VarRuns(), "*", program+".pid"))
	if err != nil || len(pids) != 1 {
		b.Fatal(pids, err)
	}
	pid, err := os.ReadFile(pids[0])
	if err != nil {
		b.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", string(pid[:len(pid)-1])))
	if err != nil {
		b.Fatal(err)
	}
	n, err := strconv.Atoi(string(rss.FindSubmatch(status)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// worker makes the workdir of a node with an OVS database.
func worker(b *testing.B, conf string) *workdir.Dir {
	b.Helper()
	wd, err := workdir.Find(ovs.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(wd.Database(workdir.OVS)), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(conf, wd.Database(workdir.OVS)); err != nil {
		b.Fatal(err)
	}
	return wd
}
