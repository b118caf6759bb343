package drift

import (
	"context"
	"os"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/scratch"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
)

// BenchmarkCheck compares a node of a deployment with more than 13,000 logical flows, which
// has what OVN computes, and one in which each hundredth flow is missing.
func BenchmarkCheck(b *testing.B) {
	ovs.Need(b, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovn-controller", "ovn-northd", "ovn-nbctl")
	wd, err := workdir.Find(ovs.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	record(b, wd)
	flows := wd.DumpFile("br-int", workdir.Flows)
	for _, drifted := range []bool{false, true} {
		name, verdict := "same", None
		if drifted {
			name, verdict = "drifted", Found
			removeEach(b, flows, 100)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := Check(b.Context(), wd, Options{Runtime: process.Name, Runtimes: choose.Finder("test")})
				if err != nil || r.Verdict != verdict {
					b.Fatal(r, err)
				}
				b.ReportMetric(float64(r.Compared.Flows), "flows")
			}
		})
	}
	b.Run("northd", func(b *testing.B) {
		for b.Loop() {
			r, err := Check(b.Context(), wd, Options{Runtime: process.Name, Runtimes: choose.Finder("test"), Northd: true})
			if err != nil || r.Northd == nil || r.Northd.Same != r.Northd.Compared {
				b.Fatal(r, err)
			}
			b.ReportMetric(float64(r.Northd.Compared), "logical-flows")
		}
	})
}

// record lets OVN install the flows of the node, and writes them and the databases into a
// workdir.
func record(b *testing.B, wd *workdir.Dir) {
	b.Helper()
	d := ovndb.NewDeployment(b, ovs.NBSchema, ovs.SBSchema, ovs.Schema)
	dir, err := scratch.Lock(wd)
	if err != nil {
		b.Fatal(err)
	}
	defer scratch.Release(dir)
	s, err := scratch.Start(b.Context(), scratch.Options{Dir: dir,
		Runtime: process.New(process.Options{Folders: dir.RuntimeFolders()}),
		NB:      d.NB, SB: d.SB, Northd: true, Nodes: []scratch.Recorded{{Name: "worker", Conf: d.OVS}}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	if err := s.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	dump, err := s.Dump(b.Context(), "worker", openflow.OpenFlow14)
	if err != nil {
		b.Fatal(err)
	}
	for path, content := range map[string]string{wd.DumpFile(dump.Bridge, workdir.Flows): dump.Flows,
		wd.DumpFile(dump.Bridge, workdir.Groups): dump.Groups, wd.DumpFile(dump.Bridge, workdir.Meters): dump.Meters} {
		files.Write(b, path, content)
	}
	for kind, path := range map[workdir.Kind]string{workdir.NB: dir.WorkingCopy(workdir.NB),
		workdir.SB: dir.WorkingCopy(workdir.SB), workdir.OVS: s.Conf("worker")} {
		files.Write(b, wd.Database(kind), files.Read(b, path))
	}
}

// removeEach removes each n-th line of a file.
func removeEach(b *testing.B, path string, n int) {
	b.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var kept []byte
	line := 0
	for _, c := range content {
		if line%n != n-1 {
			kept = append(kept, c)
		}
		if c == '\n' {
			line++
		}
	}
	files.Write(b, path, string(kept))
}
