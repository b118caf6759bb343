package workdir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkTree refuses a workdir with types of files that ovs-offline never makes
// there. A workdir from another person could hold links that lead out of it, and
// named pipes and devices whose reading never ends.
func (d *Dir) checkTree() error {
	folders := []string{"db", "restore_flows", "recorded", "bin", "run", "var-run", stagingName}
	files := []string{"manifest.json", "replica.json", "report.json"}
	for _, name := range append(folders, files...) {
		err := filepath.WalkDir(d.join(name), func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return nil // the step that reads the file returns the error
			}
			rel := d.Relative(path)
			if what := d.unexpected(rel, entry.Type()); what != "" {
				remedy := "choose another with -w"
				if d.Used() { // unlike / or another folder of the system, whose links have to stay
					remedy = "remove it, or " + remedy
				}
				return fmt.Errorf("workdir %s: %s is %s, which ovs-offline never makes there: the workdir is not used; %s", d.path, path, what, remedy)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unexpected names a file's type, "" for one that ovs-offline makes at that path.
func (d *Dir) unexpected(path string, kind fs.FileMode) string {
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
