package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// resolve returns the path on this host of a file of an image, whose root file system is
// in the folder root. Symbolic links lead where they would if root were "/": an image's
// absolute link, or one with too many "..", does not lead to a file of this host.
func resolve(root, path string) (string, error) {
	const maxLinks = 40 // as in Linux
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(root, next))
		switch {
		case errors.Is(err, syscall.EINVAL): // it is not a link
			at = next
			continue
		case err != nil:
			return "", fmt.Errorf("the image's %s: %w", path, err)
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("the image's %s: too many symbolic links in %s", path, root)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return filepath.Join(root, at), nil
}
