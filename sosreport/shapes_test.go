package sosreport

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// TestRealReports checks the known contents of a capture.
func TestRealReports(t *testing.T) {
	for name, want := range map[string]struct {
		bridges []string
		host    string
		dbs     []string
	}{
		"compute": {[]string{"br-int"}, "compute1",
			[]string{"var/lib/openvswitch/conf.db", "var/lib/ovn/etc/ovnnb_db.db", "var/lib/ovn/etc/ovnsb_db.db"}},
		"worker": {[]string{"br-int", "breth0"}, "ovn-worker",
			[]string{"var/lib/openvswitch/conf.db", "var/lib/ovn/etc/ovnnb_db.db", "var/lib/ovn/etc/ovnsb_db.db"}},
	} {
		r := open(t, realReports[name])
		if !reflect.DeepEqual(r.Bridges, want.bridges) || r.Host != want.host || r.OVSVersion != "3.1.0" {
			t.Errorf("%s: bridges %q, host %q, OVS %q", name, r.Bridges, r.Host, r.OVSVersion)
		}
		var dbs []string
		for _, d := range r.Databases {
			dbs = append(dbs, d.Origin)
		}
		if !reflect.DeepEqual(dbs, want.dbs) {
			t.Errorf("%s: databases %q", name, dbs)
		}
		for _, b := range want.bridges {
			for _, m := range []recording.Name{recording.Flows, recording.Groups, recording.Meters, recording.TLVMap,
				workdir.RecordedShow, workdir.RecordedFDB, workdir.RecordedFeatures, workdir.RecordedBridgeFlows} {
				if len(r.Outputs(m, b)) == 0 {
					t.Errorf("%s: no %s of %s", name, m, b)
				}
			}
			if first := r.Outputs(recording.Flows, b)[0]; first.OpenFlow != openflow.OpenFlow15 || first.Truncated {
				t.Errorf("%s: the first dump of %s is %+v", name, b, first)
			}
		}
		for _, m := range []recording.Name{workdir.RecordedDatapathFlows, "dpctl.dump-conntrack",
			workdir.RecordedDatapathShow, "list-interface", "list-bridge", "list-open_vswitch", workdir.RecordedBFD,
			workdir.RecordedRoutes, workdir.RecordedNeighbours, "ofproto.list-tunnels", workdir.RecordedTunnelPorts} {
			if len(r.Outputs(m, "")) != 1 {
				t.Errorf("%s: %d outputs of %s", name, len(r.Outputs(m, "")), m)
			}
		}
	}
}

// TestEveryShapeGivesTheSameReport opens one report in every packaging in which reports
// occur.
func TestEveryShapeGivesTheSameReport(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads many archives")
	}
	for name, path := range realReports {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			want := answers(t, open(t, path))
			plain := uncompressed(t, path)
			for ext, how := range compressions {
				// The file's name does not matter: the content decides.
				packed := write(t, "report", compress(t, how, plain))
				r := open(t, packed)
				if got := answers(t, r); !reflect.DeepEqual(got, want) {
					t.Errorf("%s gives another report:\n%+v\n%+v", ext, got, want)
				}
				if info, _ := os.Stat(packed); r.BytesRead != info.Size() {
					t.Errorf("%s: read %d of %d bytes", ext, r.BytesRead, info.Size())
				}
			}
			dir := t.TempDir()
			extract(t, plain, dir)
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Fatal(err, entries)
			}
			inner := filepath.Join(dir, entries[0].Name())
			for _, source := range []string{inner, inner + "/", dir, dir + "/"} {
				if got := answers(t, open(t, source)); !reflect.DeepEqual(got, want) {
					t.Errorf("the folder %s gives another report:\n%+v\n%+v", source, got, want)
				}
			}
			t.Chdir(inner)
			if got := answers(t, open(t, ".")); !reflect.DeepEqual(got, want) {
				t.Errorf("the working folder gives another report:\n%+v\n%+v", got, want)
			}
		})
	}
}

// TestReportWithoutTopFolderIsRead opens a report without a top folder, as
// openstack-must-gather leaves it. Everything but the name of the top folder is the
// same.
func TestReportWithoutTopFolderIsRead(t *testing.T) {
	want := answers(t, open(t, realReports["worker"]))
	want.Host = "" // only the top folder's name has it
	var members []member
	r := tar.NewReader(bytes.NewReader(uncompressed(t, realReports["worker"])))
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		if _, below, ok := strings.Cut(h.Name, "/"); ok && h.Typeflag == tar.TypeReg {
			body := make([]byte, h.Size)
			if _, err := r.Read(body); err != nil && h.Size > 0 && len(body) == 0 {
				t.Fatal(err)
			}
			members = append(members, file("./"+below, string(body)))
		}
	}
	for _, prefix := range []string{"", "./"} {
		for i := range members {
			members[i].name = prefix + strings.TrimPrefix(members[i].name, "./")
		}
		if got := answers(t, openMembers(t, members...)); !reflect.DeepEqual(got, want) {
			t.Errorf("with %q for a top folder:\n%+v\n%+v", prefix, got, want)
		}
	}
}

// TestReportIsReadInOnePass passes the archive as the pipe of a shell's <(...), which can be read
// only once.
func TestReportIsReadInOnePass(t *testing.T) {
	for name, path := range realReports {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		reader, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer w.Close()
			w.Write(raw)
		}()
		r := open(t, fmt.Sprintf("/dev/fd/%d", reader.Fd()))
		reader.Close()
		if r.BytesRead != int64(len(raw)) {
			t.Errorf("%s: read %d of %d bytes", name, r.BytesRead, len(raw))
		}
		if got, want := answers(t, r), answers(t, open(t, path)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: a pipe gives another report", name)
		}
	}
}

func TestProgressIsReported(t *testing.T) {
	info, err := os.Stat(realReports["compute"])
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	_, err = Open(context.Background(), realReports["compute"], t.TempDir(), archive.Default(), func(read, total int64) {
		if read < last || read > total || total != info.Size() {
			t.Errorf("%d of %d after %d", read, total, last)
		}
		last = read
	})
	if err != nil || last != info.Size() {
		t.Errorf("%v, the last word was %d of %d", err, last, info.Size())
	}
}

// TestXzOfManyBlocks opens xz files of several blocks, since sos up to 4.1 let xz
// compress with several threads, and of several streams in a row, which must-gathers
// hold.
func TestXzOfManyBlocks(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip(err)
	}
	plain := uncompressed(t, realReports["worker"])
	cmd := exec.Command("xz", "-T2", "--block-size=100KiB", "-c")
	cmd.Stdin = bytes.NewReader(plain)
	packed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := answers(t, open(t, realReports["worker"]))
	if got := answers(t, open(t, write(t, "r.tar.xz", packed))); !reflect.DeepEqual(got, want) {
		t.Error("an archive of many blocks gives another report")
	}
}

// TestConcatenated reads `cat a.tar.xz b.tar.xz` as tar -i does; both archives have
// parts of one report.
func TestConcatenated(t *testing.T) {
	a := tarOf(t, under(top, file("sos_commands/openvswitch/ovs-vsctl_-t_5_list-br", "br0\n"))...)
	b := tarOf(t, under(top, file("sos_commands/openvswitch/ovs-ofctl_dump-flows_br0", "flows"))...)
	for ext, how := range compressions {
		joined := append(bytes.Clone(compress(t, how, a)), compress(t, how, b)...)
		r := open(t, write(t, "joined", joined))
		if got := content(t, r, recording.Flows, "br0", ""); got != "flows" {
			t.Errorf("%s: the second part has %q", ext, got)
		}
	}
}

// TestCutOff checks that an archive with any compression, cut at any point, is never
// mistaken for a complete one, and that the error names the cause.
func TestCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads many archives")
	}
	plain := tarOf(t, under(top,
		file("version.txt", "sosreport: 4.5.0\n"),
		file("sos_commands/openvswitch/ovs-vsctl_-t_5_list-br", "br0\n"),
		file("sos_commands/openvswitch/ovs-ofctl_dump-flows_br0", noise(40000)),
		file("sos_commands/openvswitch/ovs-ofctl_show_br0", noise(5000)),
		file("var/log/messages", noise(20000)),
		file("etc/openvswitch/conf.db", noise(3000)))...)
	for ext, how := range compressions {
		whole := compress(t, how, plain)
		cuts := []int{1, 2, 5, 6, 7, 11, 12, 13, 20, 100, 511, 512, 513, 1024, 1536, 2048, 2560}
		for i := 1; i < 25; i++ {
			cuts = append(cuts, len(whole)*i/25, len(whole)*i/25/512*512)
		}
		for _, tail := range []int{1, 2, 3, 4, 8, 12, 16, 100, 511, 512, 513, 1023, 1024} {
			cuts = append(cuts, len(whole)-tail)
		}
		if how == nil {
			for n := 512; n < len(whole)-1024; n += 512 { // between members too
				cuts = append(cuts, n)
			}
		}
		for _, n := range cuts {
			if n <= 0 || n >= len(whole) || how == nil && n >= len(whole)-512 {
				continue // the second of two blocks of zeros is padding: without it nothing is missing
			}
			r, err := Open(context.Background(), write(t, "cut", whole[:n]), t.TempDir(), archive.Default(), nil)
			switch {
			case err == nil:
				t.Errorf("%s cut to %d of %d bytes is taken for a report: %+v", ext, n, len(whole), r)
			case n >= 512 && !strings.Contains(err.Error(), "cut off"):
				t.Errorf("%s cut to %d of %d bytes: %v", ext, n, len(whole), err)
			case strings.Contains(err.Error(), "\n"):
				t.Errorf("%s: the error has more than one line: %q", ext, err)
			}
		}
	}
}

// noise returns text that doesn't compress.
func noise(n int) string {
	out := make([]byte, n)
	x := uint32(1)
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = byte(x)
	}
	return string(out)
}

// TestDamaged checks that the checksums of every compression reveal a flipped byte in
// the middle.
func TestDamaged(t *testing.T) {
	plain := tarOf(t, under(top,
		file("sos_commands/openvswitch/ovs-vsctl_-t_5_list-br", "br0\n"),
		file("sos_commands/openvswitch/ovs-ofctl_dump-flows_br0", noise(40000)))...)
	for ext, how := range compressions {
		if how == nil {
			continue // a plain tar has no checksums of its content
		}
		broken := compress(t, how, plain)
		broken[len(broken)/2] ^= 0x10
		path := write(t, "broken", broken)
		_, err := Open(context.Background(), path, t.TempDir(), archive.Default(), nil)
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s with a flipped byte: %v", ext, err)
		}
	}
}

func TestNotAReport(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.MkdirAll(filepath.Join(other, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "a/b/c"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := tarOf(t)
	without := tarOf(t, file(top+"version.txt", "sosreport: 4.5.0\n"), file(top+"etc/hostname", "n1\n"),
		file(top+"sos_commands/kernel/uname_-a", "Linux\n"))
	for _, c := range []struct {
		what   string
		source string
		want   error
	}{
		{"an empty file", write(t, "e", nil), ErrNotArchive},
		{"a text", write(t, "t", []byte("hello\n")), ErrNotArchive},
		{"a long text", write(t, "t", bytes.Repeat([]byte("hello\n"), 1000)), ErrNotArchive},
		{"zeros", write(t, "z", make([]byte, 10240)), ErrNotArchive},
		{"a compressed text", write(t, "t.gz", compress(t, compressions[".tar.gz"], bytes.Repeat([]byte("hello\n"), 1000))),
			ErrNotArchive},
		{"a short compressed text", write(t, "t.xz", compress(t, compressions[".tar.xz"], []byte("hello\n"))), ErrNotArchive},
		{"a compressed nothing", write(t, "n.gz", compress(t, compressions[".tar.gz"], nil)), ErrNotArchive},
		{"a tar of nothing", write(t, "e.tar", empty), ErrNotArchive},
		{"a database", write(t, "conf.db", []byte("OVSDB JSON 2 0\n{}")), ErrNotArchive},
		{"a folder without a report", other, ErrEmpty},
		{"an empty folder", t.TempDir(), ErrEmpty},
		{"a tar without a report", write(t, "o.tar", tarOf(t, file("a/b", "c"))), ErrEmpty},
	} {
		r, err := Open(context.Background(), c.source, t.TempDir(), archive.Default(), nil)
		if !errors.Is(err, c.want) || r != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if !strings.Contains(err.Error(), c.source) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not one line that names the source: %q", c.what, err)
		}
	}
	if r := open(t, write(t, "w.tar", without)); (len(r.Databases) > 0) || r.Host != "n1" {
		t.Errorf("a report without OVS: host %q, HasOVS %v", r.Host, (len(r.Databases) > 0))
	}
	if _, err := Open(context.Background(), filepath.Join(dir, "missing"), t.TempDir(), archive.Default(),
		nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	extract(t, uncompressed(t, realReports["compute"]), dir)
	for _, source := range []string{realReports["compute"], dir} {
		if _, err := Open(ctx, source, t.TempDir(), archive.Default(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestFolderOfReportsIsRefused checks that a folder of reports is refused as one
// report: mixing the flows of one node with the database of another would be worse than
// an error.
func TestFolderOfReportsIsRefused(t *testing.T) {
	members := []member{
		file("sosreport-a-2026-01-02-aaaaaaa/sos_commands/openvswitch/ovs-vsctl_-t_5_list-br", "br0\n"),
		file("sosreport-b-2026-01-02-bbbbbbb/etc/openvswitch/conf.db", "db"),
	}
	packed := tarOf(t, members...)
	dir := t.TempDir()
	extract(t, packed, dir)
	for _, source := range []string{write(t, "two.tar", packed), dir} {
		_, err := Open(context.Background(), source, t.TempDir(), archive.Default(), nil)
		if err == nil || !strings.Contains(err.Error(), "sosreport-a-2026-01-02-aaaaaaa") ||
			!strings.Contains(err.Error(), "sosreport-b-2026-01-02-bbbbbbb") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
