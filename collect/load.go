package collect

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

// LoadOptions are the options of Load.
type LoadOptions struct {
	Name     string   // of the bundle, for messages
	Force    bool     // replace data that a workdir holds
	Nodes    []string // which nodes to load, by name; all if empty
	Limits   archive.Limits
	AddImage bundle.AddImage // nil leaves the image of the bundle out
}

// LoadedNode is a node that was loaded into a workdir.
type LoadedNode struct {
	bundle.Loaded
	Path string // of its workdir
}

// IsIncomplete reports whether a part of the data or the image is missing.
func (l LoadedNode) IsIncomplete() bool { return HasLost(l.Collections) || l.ImageError != nil }

// Load loads a bundle of one node into a workdir, or each node of a bundle of several into a
// workdir of its own in a folder: either all or none.
func Load(ctx context.Context, wd *workdir.Dir, in io.Reader, options LoadOptions) ([]LoadedNode, error) {
	if err := options.refuse(wd); err != nil {
		return nil, err
	}
	reader, err := bundle.Open(ctx, in, options.Limits)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", options.Name, err)
	}
	defer reader.Close()
	if reader.Nodes() != nil {
		return options.loadSet(wd, reader)
	}
	if err := options.checkSingle(wd); err != nil {
		return nil, err
	}
	loaded, err := reader.Load(wd, options.AddImage)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", options.Name, err)
	}
	return []LoadedNode{{loaded, wd.Path()}}, nil
}

func (o LoadOptions) refuse(wd *workdir.Dir) error {
	return Refuse(wd, o.Force, false, workdir.AllKinds()...)
}

// checkSingle returns an error for a workdir or a selection that a bundle of one node is not for.
func (o LoadOptions) checkSingle(wd *workdir.Dir) error {
	below, err := workdir.Below(wd.NodesFolder())
	switch {
	case err != nil:
		return fmt.Errorf("workdir: %w", err)
	case len(below) > 0:
		return fault.Usagef("%s holds the working directories of several nodes; load this one beside them, into -w %s", wd.Path(), show.Word(filepath.Join(wd.Path(), "NODE")))
	case len(o.Nodes) > 0:
		return fault.Usagef("--node selects from a file of several nodes, and this one holds one")
	}
	return nil
}

// choose returns the names among all that are wanted, each once.
func (o LoadOptions) choose(all []string) ([]string, error) {
	for _, name := range o.Nodes {
		if !slices.Contains(all, name) {
			return nil, fault.Usagef("%s: no such node: %q; there are: %s", o.Name, name, phrase.FirstNames(all))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return len(o.Nodes) > 0 && !slices.Contains(o.Nodes, name) }), nil
}

// loadSet loads the nodes of a bundle of several, each into a workdir of its own.
func (o LoadOptions) loadSet(folder *workdir.Dir, reader *bundle.Reader) (loaded []LoadedNode, err error) {
	if folder.Used() {
		return nil, fault.Usagef("%s is the working directory of a node, and %s holds several; choose another folder with -w", folder.Path(), o.Name)
	}
	names, err := o.choose(reader.Nodes())
	if err != nil {
		return nil, err
	}
	var nodes []bundle.Workdir
	defer func() {
		for _, node := range nodes {
			node.Dir.RemoveIfEmpty() // after an error
			node.Dir.Unlock()
		}
	}()
	for _, name := range names {
		wd, err := workdir.Lock(filepath.Join(folder.Path(), name))
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, bundle.Workdir{Name: name, Dir: wd})
		if err := o.refuse(wd); err != nil {
			return nil, err
		}
	}
	parts, err := reader.LoadSet(folder, nodes, o.AddImage)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", o.Name, err)
	}
	for i, part := range parts {
		loaded = append(loaded, LoadedNode{part, nodes[i].Dir.Path()})
	}
	return loaded, nil
}
