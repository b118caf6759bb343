package archive_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
)

// zipped returns a zip archive of files; a name that ends in "->" is a link to its text.
func zipped(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, file := range files {
		header := &zip.FileHeader{Name: file[0], Method: zip.Deflate}
		if name, isLink := strings.CutSuffix(file[0], "->"); isLink {
			header.Name = name
			header.SetMode(os.ModeSymlink | 0o777)
		}
		entry, err := writer.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read reads an archive and returns the names that were kept, and what was lost.
func read(t *testing.T, name string, content []byte, limits archive.Limits) (tree *archive.Tree, names string,
	err error) {
	t.Helper()
	source, spool := filepath.Join(t.TempDir(), name), t.TempDir()
	if err := os.WriteFile(source, content, 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err = archive.Read(t.Context(), source, spool, func(string, []byte) archive.Keep { return archive.Take }, limits,
		nil)
	if err != nil {
		return nil, "", err
	}
	left, err := os.ReadDir(spool)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, len(left), len(tree.Files), "files in the spool folder")
	return tree, strings.Join(tree.Names(), " "), nil
}

// TestZipArchives checks zip archives, as people attach them to tickets.
func TestZipArchives(t *testing.T) {
	inner := zipped(t, [2]string{"b", "text"})
	for name, c := range map[string]struct {
		content []byte
		want    string
		lost    int
	}{
		"files, folders and links": {zipped(t, [2]string{"case/", ""}, [2]string{"case/a", "text"},
			[2]string{"case/l->", "a"}), "case/a case/l", 0},
		"an archive in it": {zipped(t, [2]string{"node.zip", string(inner)}, [2]string{"a", "text"}), "a node.zip/b",
			0},
		"a document in it": {zipped(t, [2]string{"notes.docx", string(inner)}), "notes.docx", 0},
		"names that lead out": {zipped(t, [2]string{"../../a", "text"}, [2]string{"/etc/b", "text"},
			[2]string{"c", "text"}), "c", 0},
		"an encrypted entry": {encrypted(zipped(t, [2]string{"a", "text"}, [2]string{"b", "text"})), "b", 1},
		"a damaged entry": {damaged(zipped(t, [2]string{"a", strings.Repeat("text", 9)}, [2]string{"b", "text"})),
			"b", 1},
		"no entries": {zipped(t), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			tree, names, err := read(t, "case.zip", c.content, archive.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			expect.Equal(t, names, c.want)
			expect.Equal(t, len(tree.Lost), c.lost, tree.Lost)
		})
	}
}

// encrypted sets the flag of an encrypted first entry, in its header and in the directory.
func encrypted(content []byte) []byte {
	content[6] |= 1
	content[bytes.Index(content, []byte("PK\x01\x02"))+8] |= 1
	return content
}

// damaged changes a byte of the first entry.
func damaged(content []byte) []byte {
	content[len("PK\x03\x04")+27+1] ^= 0xff
	return content
}

// TestHostileZipArchives checks that archives beyond the limits, and cut ones, are errors.
func TestHostileZipArchives(t *testing.T) {
	many := make([][2]string, 300)
	for i := range many {
		many[i] = [2]string{fmt.Sprint(i), ""}
	}
	whole := zipped(t, [2]string{"a", strings.Repeat("text", 1000)})
	for name, c := range map[string]struct {
		content []byte
		limits  archive.Limits
		limited bool
	}{
		"many entries": {zipped(t, many...),
			archive.Limits{Bytes: 1 << 30, FileBytes: 1 << 30, Ratio: 100, Entries: 200, Files: 1000, Links: 10, Nodes: 1},
			true},
		"a large file": {zipped(t, [2]string{"a", strings.Repeat("a", 1<<20)}),
			archive.Limits{Bytes: 1 << 30, FileBytes: 1 << 19, Ratio: 10000, Entries: 200, Files: 1000, Links: 10, Nodes: 1},
			true},
		"many bytes": {zipped(t, [2]string{"a", strings.Repeat("a", 1<<20)}),
			archive.Limits{Bytes: 1 << 19, FileBytes: 1 << 30, Ratio: 10000, Entries: 200, Files: 1000, Links: 10, Nodes: 1},
			true},
		"a high ratio": {zipped(t, [2]string{"a", strings.Repeat("a", 200<<20)}), archive.Limits{}, true},
		"cut":          {whole[:len(whole)/2], archive.Limits{}, false},
		"a false number": {append(whole[:len(whole)-12:len(whole)-12],
			"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...), archive.Limits{}, false},
		"a false location": {bytes.Replace(whole, []byte("PK\x05\x06"),
			[]byte("PK\x06\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00PK\x05\x06"), 1), archive.Limits{},
			false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(t, "case.zip", c.content, c.limits)
			if err == nil || errors.Is(err, archive.ErrLimit) != c.limited {
				t.Errorf("error %v; beyond a limit: %v", err, c.limited)
			}
		})
	}
}
