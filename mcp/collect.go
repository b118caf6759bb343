package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
)

// CollectParams are the parameters of collect.
type CollectParams struct {
	Path string `json:"path" jsonschema:"sos report, must-gather, database or folder, relative to the server's root"`
	Name string `json:"name,omitempty" jsonschema:"name of a new folder for the node of path, if other nodes were or will be collected; without it, a node alone goes to the server's folder itself, and each of several to a folder with its name"`
}

// folderName matches the name of a folder that collect may make.
var folderName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (r replicaTools) collect(ctx context.Context, c *toolCall, in CollectParams) (*NodesResult, error) {
	path, err := findBelow(r.Root, in.Path)
	if err != nil {
		return nil, err
	}
	folder := r.Folder
	if in.Name != "" {
		if !folderName.MatchString(in.Name) {
			return nil, fmt.Errorf("name takes letters, digits, dots and dashes, not %q", in.Name[:min(len(in.Name), 80)])
		}
		if folder, err = collect.Place(folder, in.Name, true); err != nil {
			return nil, r.explainRefusal(err, path)
		}
	}
	wd, err := workdir.Lock(folder)
	if err != nil {
		return nil, err
	}
	defer wd.Unlock()
	_, found, err := collect.Collect(ctx, wd, collect.Files{Paths: []string{path}, Limits: archive.Default(), Progress: reportReading(c.progress)}, collect.Options{Alone: in.Name != ""})
	if errors.Is(err, collect.ErrSeveral) {
		err = fmt.Errorf("%w: leave out name, and each gets a folder with its name", err)
	}
	if err != nil {
		return nil, r.explainRefusal(err, path)
	}
	c.remark(found.Remarks...)
	for _, lost := range found.Lost {
		c.remark("could not be read: " + lost)
	}
	return r.after(ctx, c, NodesParams{}, nil)
}

// explainRefusal returns the error of a collection that would replace data, or hide it, with what an
// assistant can do in place of the flags that a user has.
func (r replicaTools) explainRefusal(err error, path string) error {
	occupied, ok := errors.AsType[*collect.OccupiedError](err)
	switch {
	case ok && r.Folder != occupied.Workdir:
		return fmt.Errorf("%w: %s: %s; this tool replaces nothing: with another name it keeps both, and the user replaces the data with: ovs-offline -w %s collect --force %q",
			collect.ErrOccupied, filepath.Base(occupied.Workdir), strings.Join(occupied.Data, "; "), r.Folder, path)
	case ok:
		return fmt.Errorf("%w: %s; this tool replaces nothing: the user replaces the data with: ovs-offline -w %s collect --force %q",
			collect.ErrOccupied, strings.Join(occupied.Data, "; "), r.Folder, path)
	case errors.Is(err, collect.ErrOccupied):
		return fmt.Errorf("%w: %s holds one node; the user starts a server for several with: ovs-offline -w FOLDER mcp", collect.ErrOccupied, r.Folder)
	}
	return err
}

// reportReading returns a function for the progress of a collection, which reports each 64 MiB.
func reportReading(notify func(string)) archive.Progress {
	const step = 64 << 20
	var reported int64
	return func(read, _ int64) {
		if read-reported >= step {
			reported = read
			notify(fmt.Sprintf("read %d MiB", read>>20))
		}
	}
}

// findBelow returns the path of a file below a root, with all symbolic links resolved.
func findBelow(root, path string) (string, error) {
	if err := checkText("path", path); err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(root, filepath.Clean(path)); err != nil {
			return "", err
		}
	}
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("path %q is not below the server's root", path)
	}
	found, err := filepath.EvalSymlinks(filepath.Join(root, path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no file %q below the server's root", path)
	}
	if err != nil {
		return "", err
	}
	if relative, err := filepath.Rel(root, found); err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("path %q is a link that leaves the server's root", path)
	}
	if _, err := os.Stat(found); err != nil {
		return "", err
	}
	return found, nil
}
