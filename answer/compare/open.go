package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/temporary"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

// OpenOptions are the options of Open.
type OpenOptions struct {
	Limits   archive.Limits // of an archive; the zero value stands for archive.Default
	Progress archive.Progress
	// Earlier opens the first of several states in a text, and not the last.
	Earlier bool
}

// Open opens a capture: a workdir, a set, a file that save wrote, or what collect takes,
// such as an sos report. The last two are unpacked into a temporary folder, which Close
// removes.
func Open(ctx context.Context, path string, options OpenOptions) (*Side, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() && options.Earlier {
		return nil, fault.Usagef("%s is one capture: compare takes OLD and NEW", path)
	}
	if info.IsDir() {
		side, err := openFolder(ctx, path, path, options)
		if side != nil || err != nil {
			return side, err
		}
	}
	folder, remove, err := temporary.Folder("compare")
	if err != nil {
		return nil, err
	}
	side, err := unpack(ctx, path, filepath.Join(folder, "data"), options)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	side.closers = append([]func(){func() { _ = remove() }}, side.closers...) // after the databases are closed
	return side, nil
}

// openFolder opens a workdir or a set; it returns nil for another folder.
func openFolder(ctx context.Context, name, path string, options OpenOptions) (*Side, error) {
	wd, err := workdir.Find(path)
	if err != nil {
		if _, statErr := os.Stat(filepath.Join(path, "manifest.json")); errors.Is(statErr, fs.ErrNotExist) {
			return nil, nil // a folder of another kind, such as an extracted report
		}
		return nil, err
	}
	nodes := snapshot.Of(wd)
	if !wd.Used() {
		if nodes, err = snapshot.Open(path, nil); nodes == nil || err != nil {
			return nil, err
		}
	}
	return OfSet(ctx, name, nodes)
}

// unpack loads or collects a source into a folder, and opens that.
func unpack(ctx context.Context, source, folder string, options OpenOptions) (*Side, error) {
	wd, err := workdir.Lock(folder)
	if err != nil {
		return nil, err
	}
	defer wd.Unlock()
	loaded, err := load(ctx, source, wd, options)
	if err != nil {
		return nil, err
	}
	var lost []string
	if !loaded {
		_, found, err := collect.Collect(ctx, wd, collect.Files{Paths: []string{source}, Limits: options.Limits, Progress: options.Progress, Earlier: options.Earlier}, collect.Options{})
		if err != nil {
			return nil, fmt.Errorf("collecting %s: %w", source, err)
		}
		if options.Earlier && found.Repeated == 0 {
			return nil, fault.Usagef("%s has no output of a command twice: compare takes OLD and NEW, or a text with two states", source)
		}
		lost = found.Lost
	}
	side, err := openFolder(ctx, source, folder, options)
	if err == nil && side == nil {
		err = fmt.Errorf("%s holds no node", source)
	}
	if err != nil {
		return nil, err
	}
	side.lost = append(side.lost, lost...)
	return side, nil
}

// load loads a file that save wrote; it returns false for a source of another kind.
func load(ctx context.Context, source string, wd *workdir.Dir, options OpenOptions) (bool, error) {
	if info, err := os.Stat(source); err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file, err := os.Open(source)
	if err != nil {
		return false, err
	}
	defer file.Close()
	reader, err := bundle.Open(ctx, file, options.Limits)
	if errors.Is(err, bundle.ErrNotBundle) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("loading %s: %w", source, err)
	}
	defer reader.Close()
	if err := loadNodes(reader, wd); err != nil {
		return false, fmt.Errorf("loading %s: %w", source, err)
	}
	return true, nil
}

// loadNodes loads the node of a bundle into a workdir, or several nodes into workdirs in it.
func loadNodes(reader *bundle.Reader, wd *workdir.Dir) error {
	names := reader.Nodes()
	if names == nil {
		_, err := reader.Load(wd, nil)
		return err
	}
	var nodes []bundle.Workdir
	defer func() {
		for _, n := range nodes {
			n.Dir.Unlock()
		}
	}()
	for _, name := range names {
		below, err := workdir.Lock(filepath.Join(wd.Path(), name))
		if err != nil {
			return err
		}
		nodes = append(nodes, bundle.Workdir{Name: name, Dir: below})
	}
	_, err := reader.LoadSet(wd, nodes, nil)
	return err
}
