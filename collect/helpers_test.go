package collect

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/workdir"
)

const (
	compute = "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"
	worker  = "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"
	top     = "sosreport-node1-2026-01-02-abcdefg/"
	plugin  = "sos_commands/openvswitch/"
)

// member is a file of a report, or a link if target is set, which is a hard link if
// hard is set.
type member struct {
	name, body, target string
	hard               bool
}

// report writes an archive that holds the members below a top folder, and returns its
// path.
func report(t *testing.T, members ...member) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Name: top + m.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(m.body))}
		switch {
		case m.hard:
			h.Typeflag, h.Linkname = tar.TypeLink, top+m.target
		case m.target != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.target
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sosreport.tar")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// database returns a small database file in the format of ovsdb(5); more makes it
// longer.
func database(name string, more int) string {
	text := record(fmt.Sprintf(`{"name":%q,"version":"1.2.3","cksum":"1 2","tables":{"T":{"columns":{"c":{"type":"string"}}}}}`, name))
	for i := range more {
		text += record(fmt.Sprintf(`{"_date":%d,"_comment":"row"}`, i))
	}
	return text
}

func record(body string) string {
	return fmt.Sprintf("OVSDB JSON %d %x\n%s", len(body), sha1.Sum([]byte(body)), body)
}

const listBr = plugin + "ovs-vsctl_-t_5_list-br"

// flowsReport returns a report of one bridge with n flows and a conf.db.
func flowsReport(t *testing.T, n int) string {
	t.Helper()
	return report(t, member{name: listBr, body: "br0\n"},
		member{name: plugin + "ovs-ofctl_-O_OpenFlow15_dump-flows_br0", body: flows("OF1.5", n)},
		member{name: "etc/openvswitch/conf.db", body: database("Open_vSwitch", n)},
		member{name: "var/lib/ovn/etc/ovnnb_db.db", body: database("OVN_Northbound", n)},
		member{name: "var/lib/ovn/etc/ovnsb_db.db", body: database("OVN_Southbound", n)})
}

// flows returns a dump of n flows.
func flows(version string, n int) string {
	text := "OFPST_FLOW reply (" + version + ") (xid=0x2):\n"
	if version == "" {
		text = "NXST_FLOW reply (xid=0x4):\n"
	}
	for i := range n {
		text += fmt.Sprintf(" cookie=0x%x, duration=1.2s, table=%d, n_packets=0, n_bytes=0, priority=1 actions=drop\n", i, i)
	}
	return text
}

// lock opens a workdir for a test.
func lock(t *testing.T, path string) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	return wd
}

func newWorkdir(t *testing.T) *workdir.Dir {
	t.Helper()
	return lock(t, filepath.Join(t.TempDir(), "wd"))
}

var both = Select{OVS: true, OVN: true}

// collections returns the collections that Collect installed in the one workdir.
func collections(written []Written, _ *Found, err error) ([]workdir.Collection, error) {
	if err != nil {
		return nil, err
	}
	return written[0].Collections, nil
}

func collectReport(wd *workdir.Dir, source string, selected Select, opts Options) ([]workdir.Collection, error) {
	opts.Select = selected
	return collections(Collect(context.Background(), wd, SosReport{Path: source}, opts))
}

// take collects a report, and fails the test if that fails.
func take(t *testing.T, wd *workdir.Dir, source string, selected Select,
	opts Options) map[workdir.Kind]workdir.Collection {
	t.Helper()
	list, err := collectReport(wd, source, selected, opts)
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[workdir.Kind]workdir.Collection{}
	for _, c := range list {
		byKind[c.Kind] = c
	}
	return byKind
}

// tree returns the paths below a folder, each with its mode and the digest of its content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		seen[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			seen[rel] += " " + hash(raw)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func hash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
