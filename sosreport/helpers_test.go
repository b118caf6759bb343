package sosreport

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mholt/archives"

	"ovs-offline/internal/archive"
	"ovs-offline/workdir/recording"
)

// realReports are real reports.
var realReports = map[string]string{
	"compute": "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz",
	"worker":  "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz",
}

// member is one member of a report that a test makes: a file, or an entry of type typ.
type member struct {
	name string
	body string
	typ  byte // 0 for a regular file
	link string
}

func file(name, body string) member { return member{name: name, body: body} }
func symlink(name, target string) member {
	return member{name: name, typ: tar.TypeSymlink, link: target}
}
func hardlink(name, target string) member {
	return member{name: name, typ: tar.TypeLink, link: target}
}

const top = "sosreport-node1-2026-01-02-abcdefg/"

// under puts members below a top folder.
func under(top string, members ...member) []member {
	out := make([]member, len(members))
	for i, m := range members {
		m.name = top + m.name
		if m.typ == tar.TypeLink {
			m.link = top + m.link
		}
		out[i] = m
	}
	return out
}

// tarOf returns a tar archive of the members, in their order.
func tarOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: m.typ, Linkname: m.link, Mode: 0o644, Size: int64(len(m.body))}
		if m.typ == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// write writes content to a new file.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// compressions holds the compressions of reports, by the suffix of their names.
var compressions = map[string]archives.Compressor{
	".tar.xz": archives.Xz{}, ".tar.gz": archives.Gz{}, ".tar.bz2": archives.Bz2{}, ".tar.zst": archives.Zstd{},
	".tar": nil,
}

func compress(t *testing.T, how archives.Compressor, content []byte) []byte {
	t.Helper()
	if how == nil {
		return content
	}
	var out bytes.Buffer
	w, err := how.OpenWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// uncompressed returns the plain tar of a capture.
func uncompressed(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := archives.Xz{}.OpenReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// extract extracts a tar archive into a folder.
func extract(t *testing.T, archive []byte, into string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(into, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		case tar.TypeLink:
			err = os.Link(filepath.Join(into, h.Linkname), path)
		default:
			var body []byte
			if body, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, body, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a report, and fails the test if it is not readable.
func open(t *testing.T, source string) *Report {
	t.Helper()
	r, err := Open(context.Background(), source, t.TempDir(), archive.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// openMembers opens an archive of the members.
func openMembers(t *testing.T, members ...member) *Report {
	t.Helper()
	return open(t, write(t, "report.tar", tarOf(t, members...)))
}

// answer holds the content of a report, without the paths of spooled files.
type answer struct {
	Host, Sos, OVS, OVN string
	Bridges, Dangling   []string
	Outputs             []outputAnswer
	Databases           []outputAnswer
}

type outputAnswer struct {
	Command  recording.Name
	Bridge   string
	OpenFlow string
	Origin   string
	Size     int64
	Sum      string
	Cut      bool
}

func answers(t *testing.T, r *Report) answer {
	t.Helper()
	a := answer{r.Host, r.SosVersion, r.OVSVersion, r.OVNVersion, r.Bridges, r.Dangling, nil, nil}
	for _, o := range r.All {
		a.Outputs = append(a.Outputs, outputAnswer{o.Command, o.Bridge, o.OpenFlow.String(), o.Origin, o.Size,
			sum(t, o.Spooled, o.Size), o.Truncated})
	}
	for _, d := range r.Databases {
		a.Databases = append(a.Databases, outputAnswer{"", "", "", d.Origin, d.Size, sum(t, d.Spooled, d.Size), d.Truncated})
	}
	return a
}

func sum(t *testing.T, path string, size int64) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(raw)) != size {
		t.Errorf("%s has %d bytes, the report has %d", path, len(raw), size)
	}
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

// content returns the text of the only output of a command, "" if there is none.
func content(t *testing.T, r *Report, m recording.Name, bridge, openflow string) string {
	t.Helper()
	for _, o := range r.Outputs(m, bridge) {
		if o.OpenFlow.String() == openflow {
			raw, err := os.ReadFile(o.Spooled)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
	}
	return ""
}

func databaseText(t *testing.T, d recording.Database) string {
	t.Helper()
	raw, err := os.ReadFile(d.Spooled)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
}
