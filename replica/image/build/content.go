package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime/process"
)

// Content is the content of an image that is made of files on this machine.
type Content struct {
	Versions versions.Pair
	// LeftOut names the optional parts that the image lacks, with the reason.
	LeftOut []string

	made  string // value of labelMade
	files files
	path  []string
	self  *self // nil without ovs-offline
}

// finder returns the path of a program on this machine.
type finder func(program string) (string, error)

func newContent(made string) *Content {
	return &Content{made: made, files: newFiles(), path: slices.Clone(standardPath)}
}

// Size returns the size of the files in bytes.
func (c *Content) Size() int64 {
	var sum int64
	for _, packed := range c.layers() {
		for _, added := range packed.entries {
			sum += added.size
		}
	}
	return sum
}

// layers returns the files of each layer.
func (c *Content) layers() []files {
	if c.self == nil {
		return []files{c.files}
	}
	return []files{c.files, c.self.files}
}

// addTools adds tools with all files that they need. The PATH of the image gets the
// folders of tools that are in others than usual.
func (c *Content) addTools(ctx context.Context, tools []string, find finder) error {
	for _, tool := range tools {
		path, err := c.find(tool, find)
		if err != nil {
			return err
		}
		if _, err := c.files.addProgram(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
	}
	return nil
}

// find returns the path of a tool and adds its folder to the PATH of the image.
func (c *Content) find(tool string, find finder) (string, error) {
	path, err := find(tool)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if dir := filepath.Dir(c.files.target(path)); !slices.Contains(c.path, dir) {
		c.path = append([]string{dir}, c.path...)
	}
	return path, nil
}

// addShell adds this host's shell, and the programs that scripts in a container use.
func (c *Content) addShell(ctx context.Context) error {
	if err := c.addTools(ctx, shell, process.Find); err != nil {
		return err
	}
	// Scripts and engines use these paths. PATH may have the programs elsewhere.
	for _, path := range []string{"/bin/sh", "/bin/bash"} {
		if _, err := c.files.addProgram(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// addDetrace adds ovn-detrace and the parts of Python that it needs; library is a folder
// of modules that are preferred to installed ones, "" for none. ovn-detrace is optional:
// without it, the replica's wrapper runs the host's.
func (c *Content) addDetrace(ctx context.Context, find finder, library string) error {
	return c.addOptional(ctx, detrace, func() error {
		path, err := c.find(detrace, find)
		if err != nil {
			return err
		}
		return c.files.addPythonScript(ctx, path, library)
	})
}

// addOptionalTools adds tools, or why the image lacks them.
func (c *Content) addOptionalTools(ctx context.Context, tools []string, find finder) error {
	for _, tool := range tools {
		if err := c.addOptional(ctx, tool, func() error { return c.addTools(ctx, []string{tool}, find) }); err != nil {
			return err
		}
	}
	return nil
}

// addOptional calls add, which adds a part, and undoes an incomplete one. It fails only if
// ctx has ended.
func (c *Content) addOptional(ctx context.Context, part string, add func() error) error {
	before := maps.Clone(c.files.entries)
	if err := add(); err != nil {
		c.files.entries = before
		c.LeftOut = append(c.LeftOut, fmt.Sprintf("%s: %v", part, err))
	}
	return ctx.Err()
}

// addSchemas adds the schemas that are installed below a folder, "" for /. A machine
// without OVN central may lack OVN's schemas; a replica then uses the schemas in the
// collected databases.
func (c *Content) addSchemas(below string) {
	for _, schema := range schemas {
		if !slices.ContainsFunc(schemaPrefixes, func(prefix string) bool {
			_, err := c.files.add(filepath.Join(below, prefix, schema.name))
			return err == nil
		}) {
			c.LeftOut = append(c.LeftOut, fmt.Sprintf("%s is not in %s: Debian and Ubuntu have it in %s, Fedora in %s",
				schema.name, strings.Join(schemaPrefixes, " or "), schema.debian, schema.fedora))
		}
	}
}

// addLoaderCache adds the cache of the dynamic loader: folders of libraries that are
// special to this host are listed only there.
func (c *Content) addLoaderCache() error {
	if _, err := c.files.add("/etc/ld.so.cache"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// FromRoot returns the content of an image whose root file system is in a folder. It
// reads the names of the files only. The same files give the same image.
func FromRoot(ctx context.Context, root string, pair versions.Pair) (*Content, error) {
	content := &Content{made: madeFromImage, path: standardPath, Versions: pair, files: files{entries: map[string]fileEntry{}}}
	err := filepath.WalkDir(root, func(file string, found fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		path := filepath.Join("/", strings.TrimPrefix(file, root))
		switch mode := info.Mode(); {
		case mode.IsDir():
			content.files.entries[path] = fileEntry{mode: mode}
		case mode.IsRegular():
			content.files.entries[path] = fileEntry{mode: mode, source: file, size: info.Size(), time: info.ModTime()}
		case mode&fs.ModeSymlink != 0:
			to, err := os.Readlink(file)
			if err != nil {
				return err
			}
			content.files.entries[path] = fileEntry{mode: mode, link: to}
		}
		return nil
	})
	return content, err
}
