package workdir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// checkTree refuses what ovs-offline makes nowhere in a workdir. One that was
// copied from somebody could have links that lead out of it, and files that are
// read for ever: named pipes, devices.
func (d *Dir) checkTree() error {
	folders := []string{"db", "restore_flows", "recorded", "bin", "run", "var-run", stagingName}
	files := []string{"manifest.json", "replica.json", "report.json"}
	for _, name := range append(folders, files...) {
		err := filepath.WalkDir(d.join(name), func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return nil // what can't be read is named by who needs it
			}
			rel, err := filepath.Rel(d.path, path)
			if err != nil {
				return err
			}
			if what := d.strange(rel, e.Type()); what != "" {
				return fmt.Errorf("workdir %s: %s is %s, and ovs-offline makes none there: it is not used; remove it, or choose another with -w", d.path, path, what)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strange says what a thing is that should not be there; "" for one that may be.
func (d *Dir) strange(path string, kind fs.FileMode) string {
	running := strings.HasPrefix(path, "run/") || strings.HasPrefix(path, "var-run/")
	switch {
	case kind.IsDir(), kind.IsRegular(), running && kind == fs.ModeSocket, kind == fs.ModeNamedPipe && strings.HasPrefix(d.join(path), d.Tools()+"/"):
		return ""
	case kind == fs.ModeSymlink:
		return "a link"
	case kind == fs.ModeNamedPipe:
		return "a named pipe"
	case kind == fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// What a file of ours has at the most: 20,000 files, or 10,000 entries, have
// some megabytes and a hundred thousand values.
const (
	mostJSON   = 32 << 20
	mostValues = 1 << 20
)

// readFile reads one of our files, and nothing that only has its name.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostJSON {
		return nil, fmt.Errorf("%s is none of ovs-offline's files: it is no file, or has over %d bytes", path, mostJSON)
	}
	raw := make([]byte, info.Size())
	n, err := f.ReadAt(raw, 0)
	if n == len(raw) {
		err = nil
	}
	return raw[:n], err
}

// values tells how many values a JSON text has, nearly: three bytes of it can
// take a hundred in memory.
func values(text []byte) (n int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == ',':
			n++
		}
	}
	return n + 1
}
