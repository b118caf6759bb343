package archive

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder takes the files of a folder. os.Root keeps every access inside,
// whatever links the folder holds.
func (r *reading) folder(source string) error {
	root, err := os.OpenRoot(source)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err := r.limits.Entry(); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		if err != nil {
			if name == "." {
				return err
			}
			if r.want(name+"/", nil) {
				r.lose(name, err)
			}
			return nil
		}
		if e.Type() == fs.ModeSymlink {
			target, err := root.Readlink(name)
			if err != nil {
				return nil
			}
			if err := r.keepLink(name, target); err != nil {
				return fmt.Errorf("%s: %w", source, err)
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		return r.fileOf(root, source, name)
	})
}

func (r *reading) fileOf(root *os.Root, source, name string) error {
	f, err := root.Open(name)
	if err != nil {
		if r.want(name, nil) {
			r.lose(name, err)
		}
		return nil
	}
	defer f.Close()
	sum, err := beside(filepath.Join(source, name))
	if err != nil {
		return err
	}
	in := sum.watch(&counter{Reader: f, reading: r})
	before := len(r.tree.Lost)
	if err := r.inner(name, in, 1); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(source, name), err)
	}
	if err := sum.check(in); err != nil && len(r.tree.Lost) == before {
		r.lose(name, err)
		r.forget(name)
	}
	return nil
}

// forget drops what came from an archive that is not what it should be.
func (r *reading) forget(name string) {
	for _, kept := range r.tree.Names() {
		if kept == name || strings.HasPrefix(kept, name+"/") {
			r.tree.drop(kept)
		}
	}
}
