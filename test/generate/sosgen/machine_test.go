package sosgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// TestEveryEraHasTheMachine checks that the logs and outputs in the reports of every era arrive as
// they were, with the manifest of sos and without it.
func TestEveryEraHasTheMachine(t *testing.T) {
	sweep.Only(t, "TestEveryEraReplays")
	n := recorded(t, "openstack")
	for _, e := range Eras() {
		t.Run(e.Name, func(t *testing.T) {
			report := n.Report(e)
			checkMachine(t, n.Machine(), collectedDir(t, 0, reportFolder(t, n, report)))
			checkMachine(t, n.Machine(), collectedDir(t, 0, reportFolder(t, n, WithoutManifest(report))))
		})
	}
}

// TestTheMachineAlone collects what is left of a report without databases and flows. It can't be started.
func TestTheMachineAlone(t *testing.T) {
	n := recorded(t, "openstack")
	tree := Tree{}
	tree.putMachine(n.Machine())
	tree.putText("hostname", "%s\n", n.Host)
	dir := collectedDir(t, 0, writeTop(t, fmt.Sprintf(reportName, n.Host), tree))
	checkMachine(t, n.Machine(), dir)
	if o := run(t, "-w", dir, "start"); o.code != 1 || !strings.Contains(o.err, "only logs and outputs") {
		t.Errorf("start: %d: %s", o.code, o.err)
	}
	if o := run(t, "-w", dir, "save", filepath.Join(dir, "saved")); o.code != 0 {
		t.Fatalf("save: %d: %s", o.code, o.err)
	}
	other := shortDir(t)
	if o := run(t, "-w", other, "load", filepath.Join(dir, "saved")); o.code != 0 {
		t.Fatalf("load: %d: %s", o.code, o.err)
	}
	checkMachine(t, n.Machine(), other)
	if o := run(t, "-w", other, "stop", "--purge"); o.code != 0 {
		t.Errorf("stop: %d: %s", o.code, o.err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("stop --purge left the logs")
	}
}

// TestEveryMustGatherHasLogs checks the logs of the nodes' pods.
func TestEveryMustGatherHasLogs(t *testing.T) {
	one := recorded(t, "kubernetes")
	nodes := []*Node{one, one.Renamed("ovn-worker")}
	for _, o := range OCPs() {
		t.Run(o.Name, func(t *testing.T) {
			dir := collectedDir(t, 0, write(t, MustGather(t, o, nodes...)))
			for i, n := range nodes {
				place := filepath.Join(dir, workdir.EncodeName(n.Host))
				if !o.HasFlows() && !o.Interconnect() {
					place = dir
				}
				checkMachine(t, n.PodLogs(fmt.Sprintf("ovnkube-node-%c7xk%d", 'b'+i, i)), place)
			}
		})
	}
}

// TestHostileLogs collects a report whose logs lead out of it, unpack to much, or are too many.
func TestHostileLogs(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := n.Report(newest())
	const logs = "var/log/openvswitch/"
	bomb := Gzip(bytes.Repeat(n.logLine("bridge", "again"), 2<<20))
	report = report.With(Tree{
		logs + "ovs-ctl.log":                       {Link: outside},
		logs + "ovn-northd.log":                    {Link: "../../../../../../../.." + outside},
		logs + "ovs-vswitchd.log.3.gz":             {Body: bomb},
		logs + "ovs-vswitchd.log.4.gz":             {Body: []byte("\x1f\x8bnot gzip")},
		logs + "%2e%2e.ovn-ic.log":                 {Body: []byte("x\n")},
		"var/log/pods/a_.._b/ovn-controller/0.log": {Body: []byte("x\n")},
	})
	dir := collectedDir(t, 0, reportFolder(t, n, report))
	checkMachine(t, append(n.Machine(), MachineFile{Workdir: "host/logs/ovs-vswitchd/ovs-vswitchd.log.3.gz", Body: bomb}),
		dir)
	noSecret(t, dir)
	for i := range 30_050 {
		report.putText(fmt.Sprintf("%sovs-vswitchd.log.%d", logs, 100+i), "%d\n", i)
	}
	path, err := WriteArchive(t.TempDir(), fmt.Sprintf(reportName, n.Host), report, Packings()[7])
	if err != nil {
		t.Fatal(err)
	}
	if sweep.Whole() { // the files of a folder are counted as those of an archive are, which is written in a fraction of the time
		path = reportFolder(t, n, report)
	}
	dir = collectedDir(t, 3, path)
	if files, _ := filepath.Glob(filepath.Join(dir, "host/logs/*/*")); len(files) < 29_000 || len(files) > 30_000 {
		t.Errorf("%d of 30,050 logs were taken", len(files))
	}
	if _, err := os.Stat(filepath.Join(dir, "db/ovs/conf.db")); err != nil {
		t.Error("too many logs kept the database from being collected")
	}
}

// noSecret checks that no file of a workdir is the one outside of the source.
func noSecret(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("a secret")) {
			t.Errorf("%s has what is outside of the source", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// collectedDir collects a path with an exit code, and returns the workdir.
func collectedDir(t *testing.T, code int, path string) string {
	t.Helper()
	dir := shortDir(t)
	if o := collectInto(t, dir, path); o.code != code {
		t.Fatalf("%s: %d: %s", path, o.code, o.err)
	}
	return dir
}

// checkMachine checks that a workdir has the files of a machine as they were.
func checkMachine(t *testing.T, want []MachineFile, dir string) {
	t.Helper()
	for _, file := range want {
		have, err := os.ReadFile(filepath.Join(dir, file.Workdir))
		if err != nil || !bytes.Equal(have, file.Body) {
			t.Errorf("%s of %s: %.100q, %v; want %.100q", file.Workdir, file.Source, have, err, file.Body)
		}
	}
}
