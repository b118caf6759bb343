package archive

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ovs-offline/internal/lazyregexp"
)

// folder reads the files of a folder. os.Root keeps every access inside it,
// whatever links the folder holds.
func (r *reading) folder(source string) error {
	root, err := os.OpenRoot(source)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err := r.limits.Entry(); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			if r.want(name+"/", nil) != Leave {
				r.lose(name, err)
			}
		case entry.Type() == fs.ModeSymlink:
			target, err := root.Readlink(name)
			if err != nil {
				return nil
			}
			if err := r.keepLink(name, target); err != nil {
				return fmt.Errorf("%s: %w", source, err)
			}
		case entry.Type().IsRegular():
			return r.fileOf(root, source, name)
		}
		return nil
	})
}

// archiveName matches the names of archives. What is in one that can't be opened is a loss whatever its name.
var archiveName = lazyregexp.New(`\.(?:tar(?:\.(?:xz|gz|bz2|zst))?|tgz|zip)$`)

func (r *reading) fileOf(root *os.Root, source, name string) error {
	file, err := root.Open(name)
	if err != nil {
		if r.want(name, nil) != Leave || archiveName.MatchString(name) {
			r.lose(name, err)
		}
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		r.size = info.Size() // too large a file is refused before it is read
		defer func() { r.size = 0 }()
	}
	if err := r.inner(name, checked{file, r.count}, 1); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(source, name), err)
	}
	return nil
}
