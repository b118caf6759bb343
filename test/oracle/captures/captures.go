// Package captures reads the captures of real nodes in testdata, for tests and as
// seeds of fuzz targets.
package captures

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mholt/archives"
)

// Captured calls use with each file of each capture whose name matches the pattern, cut
// at the end of a line to at most size bytes: a fuzzer spends most of its time
// copying large seeds.
func Captured(tb testing.TB, pattern string, size int, use func(content []byte)) {
	tb.Helper()
	found := 0
	for _, archive := range glob(tb, "testdata/*/*/*.tar.xz") {
		eachFile(tb, archive, func(name string, in io.Reader) {
			if ok, err := filepath.Match(pattern, filepath.Base(name)); err != nil || !ok {
				return
			}
			content, err := io.ReadAll(in)
			if err != nil {
				tb.Fatal(err)
			}
			found++
			use(shorten(content, size))
		})
	}
	if found == 0 {
		tb.Fatalf("no capture has a file that matches %s", pattern)
	}
}

// Packets calls use with the list of packets of each capture.
func Packets(tb testing.TB, use func(content []byte)) {
	tb.Helper()
	for _, path := range glob(tb, "testdata/*/*/packets") {
		content, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		use(content)
	}
}

// Unpack unpacks an archive with tar into a new folder, and returns the folder.
func Unpack(tb testing.TB, archive string, options ...string) string {
	tb.Helper()
	for _, program := range []string{"tar", "xz"} {
		if _, err := exec.LookPath(program); err != nil {
			tb.Skip(err)
		}
	}
	dir := tb.TempDir()
	if out, err := exec.Command("tar", append([]string{"-xJf", archive, "-C", dir}, options...)...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v %s", archive, err, out)
	}
	return dir
}

func eachFile(tb testing.TB, archive string, use func(name string, in io.Reader)) {
	tb.Helper()
	f, err := os.Open(archive)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	plain, err := archives.Xz{}.OpenReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	defer plain.Close()
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			use(h.Name, r)
		}
	}
}

// glob finds files below the top folder of the repository, from any package's test.
func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	root, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for !exists(filepath.Join(root, "go.mod")) {
		if root == "/" {
			tb.Fatal("no go.mod above the working folder")
		}
		root = filepath.Dir(root)
	}
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) == 0 {
		tb.Fatalf("%s: %v, %d files", pattern, err, len(found))
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func shorten(content []byte, size int) []byte {
	if len(content) <= size {
		return content
	}
	if end := bytes.LastIndexByte(content[:size], '\n'); end >= 0 {
		return content[:end+1]
	}
	return []byte(strings.ToValidUTF8(string(content[:size]), ""))
}
