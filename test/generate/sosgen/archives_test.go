package sosgen

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

// newest returns the newest era, whose reports hold the most.
func newest() Era { return Eras()[len(Eras())-1] }

func era(name string) Era {
	all := Eras()
	return all[slices.IndexFunc(all, func(e Era) bool { return e.Name == name })]
}

const reportName = "sosreport-%s-2026-01-02-abcdefg"

// TestEveryPackagingGivesTheSameNode packs and nests one report in each way that
// reports are packed, and compares what is collected.
func TestEveryPackagingGivesTheSameNode(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	name := fmt.Sprintf(reportName, n.Host)
	whole := n.Report(newest())
	want := collectedFrom(t, writeTop(t, name, whole))
	for _, p := range Packings() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			file, err := WriteArchive(t.TempDir(), name, whole, p)
			if err != nil {
				t.Fatal(err)
			}
			sameNode(t, want, file)
		})
	}
	t.Run("two concatenated archives", func(t *testing.T) {
		commands := whole.Without("etc/", "var/")
		rest := whole.Without(slices.Collect(maps.Keys(commands))...)
		var joined []byte
		for _, part := range []Tree{commands, rest} {
			packed, err := Packings()[0].Pack(part.Under(name).Tar())
			if err != nil {
				t.Fatal(err)
			}
			joined = append(joined, packed...)
		}
		file, err := writeSummed(filepath.Join(t.TempDir(), name+".tar.xz"), joined)
		if err != nil {
			t.Fatal(err)
		}
		sameNode(t, want, file)
	})
	for what, path := range map[string]string{
		"folder with logs": writeTop(t, name,
			whole.With(Tree{"sos_logs/sos.log": {Body: []byte("x\n")}, "sos_logs/ui.log": {}})),
		"folder of a folder":       write(t, whole.Under(name)),
		"folder without a name":    write(t, whole),
		"no manifest":              writeTop(t, name, WithoutManifest(whole)),
		"in a container":           writeTop(t, name, InContainer(whole, "openvswitch_vswitchd")),
		"in a container, by names": writeTop(t, name, WithoutManifest(InContainer(whole, "openvswitch_vswitchd"))),
		"in a snap":                writeTop(t, name, InSnap(whole, "openstack-hypervisor")),
		"in a snap, by names":      writeTop(t, name, WithoutManifest(InSnap(whole, "openstack-hypervisor"))),
		"of MicroOVN":              writeTop(t, name, InSnap(whole, "microovn")),
		"of MicroOVN, by names":    writeTop(t, name, WithoutManifest(InSnap(whole, "microovn"))),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sameNode(t, want, path)
		})
	}
	t.Run("sos collect", func(t *testing.T) {
		tree, err := Collected(Packings()[0], map[string]Tree{name: whole})
		if err != nil {
			t.Fatal(err)
		}
		file, err := WriteArchive(t.TempDir(), "sos-collector-case-2026-01-02-abcde", tree, Packings()[0])
		if err != nil {
			t.Fatal(err)
		}
		sameNode(t, want, file)
	})
}

// sameNode checks which files are collected from a path.
func sameNode(t *testing.T, want map[string]string, path string) {
	t.Helper()
	sameFiles(t, want, collectedFrom(t, path), path)
}

// sameFiles compares what filesOf returns.
func sameFiles(t *testing.T, want, have map[string]string, path string) {
	t.Helper()
	if !maps.Equal(want, have) {
		missing, other, extra := compare(want, have)
		t.Errorf("%s: missing %.300q, different %.300q, extra %.300q", path, missing, other, extra)
	}
}

// collectedFrom collects a path and returns the collected files.
func collectedFrom(t *testing.T, path string) map[string]string {
	t.Helper()
	dir := shortDir(t)
	if o := collectInto(t, dir, path); o.code != 0 {
		t.Fatalf("%s: %d: %s", path, o.code, o.err)
	}
	return filesOf(t, dir)
}

// filesOf returns each collected file of a workdir with its checksum. Several nodes have a folder each.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	manifests, err := filepath.Glob(filepath.Join(dir, "*", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(manifests, filepath.Join(dir, "manifest.json")) {
		top := filepath.Dir(m)
		wd, err := workdir.Find(top)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := wd.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range manifest.Collections {
			for _, f := range c.Files {
				rel, err := filepath.Rel(dir, filepath.Join(top, f.Path))
				if err != nil {
					t.Fatal(err)
				}
				files[rel] = rel + " " + f.SHA256
			}
		}
	}
	if len(files) == 0 {
		t.Fatalf("nothing was collected from %s", dir)
	}
	return files
}

// TestUnreadableSourcesAreRefused checks the exit code and the error message.
func TestUnreadableSourcesAreRefused(t *testing.T) {
	n := recorded(t, "openstack")
	name := fmt.Sprintf(reportName, n.Host)
	whole := n.Report(newest())
	file, err := WriteArchive(t.TempDir(), name, whole, Packings()[0])
	if err != nil {
		t.Fatal(err)
	}
	archive := []byte(files.Read(t, file))
	damaged := slices.Clone(archive)
	damaged[len(damaged)/2] ^= 0x40
	for what, c := range map[string]struct {
		files map[string][]byte
		words []string
	}{
		"encrypted": {map[string][]byte{"secured-" + name +
			".tar.xz.gpg": append([]byte{0x8c, 0x0d, 0x04, 0x09, 0x03, 0x02}, archive[:4000]...)}, []string{"gpg"}},
		"cut off": {map[string][]byte{name + ".tar.xz": archive[:len(archive)/2]}, []string{"cut off"}},
		"damaged": {map[string][]byte{name + ".tar.xz": damaged}, []string{name}},
		"empty":   {map[string][]byte{name + ".tar.xz": nil}, []string{"empty"}},
		"a text":  {map[string][]byte{name + ".tar.xz": []byte("hello\n")}, []string{name}},
		"a report of nothing": {map[string][]byte{name +
			".tar": whole.Without("sos_commands/", "etc/", "var/", "sos_reports/").Under(name).Tar()}, []string{name}},
		"an empty folder": {nil, nil},
	} {
		t.Run(what, func(t *testing.T) {
			tree := Tree{}
			for file, body := range c.files {
				tree.put(file, body)
			}
			dir := write(t, tree)
			path := dir
			for file := range c.files {
				path = filepath.Join(dir, file)
			}
			refused(t, c.words, path)
		})
	}
	t.Run("no such path", func(t *testing.T) { refused(t, []string{"no such file"}, filepath.Join(t.TempDir(), "x")) })
}

// refused checks that a collection fails with exit code 1 and an error that holds the
// words, and leaves nothing in the workdir.
func refused(t *testing.T, words []string, args ...string) {
	t.Helper()
	dir := shortDir(t)
	o := collectInto(t, dir, args...)
	if o.code != 1 {
		t.Errorf("%q exits with %d: %s%s", args, o.code, o.out, o.err)
	}
	for _, w := range words {
		if !strings.Contains(o.err, w) {
			t.Errorf("the error of %q does not hold %q: %s", args, w, o.err)
		}
	}
	left, _ := os.ReadDir(dir)
	for _, e := range left {
		if e.Name() != ".lock" {
			t.Errorf("%q left %s", args, e.Name())
		}
	}
}
