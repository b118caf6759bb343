package engine

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Repository is the repository of the images that ovs-offline makes, in any engine.
const Repository = "ovs-offline"

// Image is an image that an engine has.
type Image struct {
	Name    string // as Create takes it
	ID      string
	Size    int64 // bytes
	Labels  map[string]string
	Created time.Time

	Architecture string // as Go names it; only of InspectImage
}

// Repository returns the repository of the images that ovs-offline makes. podman
// keeps images that come from no registry below localhost.
func (e *Engine) Repository() string {
	if e.name == Podman {
		return "localhost/" + Repository
	}
	return Repository
}

// Images returns the images whose repository ends in the given name.
func (e *Engine) Images(ctx context.Context, repository string) ([]Image, error) {
	list, err := e.client.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return nil, err
	}
	var found []Image
	for _, i := range list.Items {
		for _, tag := range i.RepoTags {
			name, _, _ := strings.Cut(path.Base(tag), ":")
			if name == repository {
				found = append(found, Image{Name: tag, ID: i.ID, Size: i.Size, Labels: i.Labels, Created: time.Unix(i.Created, 0)})
			}
		}
	}
	return found, nil
}

// FindImage returns the full name of an image, "" if the engine does not have
// it; nothing is ever pulled. podman's docker API looks for a name without a registry
// only on docker.io, so FindImage compares the local names first.
func (e *Engine) FindImage(ctx context.Context, name string) (string, error) {
	list, err := e.client.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return "", err
	}
	for _, full := range []string{name, name + ":latest", "localhost/" + name, "localhost/" + name + ":latest"} {
		for _, i := range list.Items {
			if slices.Contains(i.RepoTags, full) {
				return full, nil
			}
		}
	}
	_, err = e.client.ImageInspect(ctx, name) // an ID, or a name on docker.io
	if cerrdefs.IsNotFound(err) {
		return "", nil
	}
	return name, err
}

// InspectImage returns an image.
func (e *Engine) InspectImage(ctx context.Context, name string) (Image, error) {
	found, err := e.client.ImageInspect(ctx, name)
	if err != nil {
		return Image{}, err
	}
	i := Image{Name: name, ID: found.ID, Size: found.Size, Architecture: found.Architecture}
	if found.Config != nil {
		i.Labels = found.Config.Labels
	}
	return i, nil
}

// Load loads an archive in the format of `docker save`.
func (e *Engine) Load(ctx context.Context, archive io.Reader) error {
	result, err := e.client.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer result.Close()
	return readMessages(result, io.Discard)
}

// Save writes an image as an archive in the format of `docker save`.
func (e *Engine) Save(ctx context.Context, id string, w io.Writer) error {
	saved, err := e.client.ImageSave(ctx, []string{id})
	if err != nil {
		return err
	}
	defer saved.Close()
	_, err = io.Copy(w, saved)
	return err
}

// Build is one run of a Containerfile.
type Build struct {
	Containerfile string
	Folder        string // whose files the steps can copy; "" for none
	Name          string // of the image
	Labels        map[string]string
	NoCache       bool
	Platform      string // OS/ARCH[/VARIANT]; "" for the engine's own
	Network       string // of the steps; "" for the engine's default
}

// Build builds an image and writes what the steps print to progress.
func (e *Engine) Build(ctx context.Context, b Build, progress io.Writer) error {
	folder, w := io.Pipe()
	defer folder.Close() // ends the writer if the engine stops reading
	go func() { w.CloseWithError(b.writeFolder(ctx, w)) }()
	options := client.ImageBuildOptions{
		Tags: []string{b.Name}, Labels: b.Labels, NoCache: b.NoCache, Remove: true, ForceRemove: true,
		NetworkMode: b.Network,
	}
	if b.Platform != "" {
		parts := append(strings.SplitN(b.Platform, "/", 3), "", "")
		options.Platforms = []ocispec.Platform{{OS: parts[0], Architecture: parts[1], Variant: parts[2]}}
	}
	result, err := e.client.ImageBuild(ctx, folder, options)
	if err != nil {
		return err
	}
	defer func() { _ = result.Body.Close() }()
	return errors.Join(ctx.Err(), readMessages(result.Body, progress))
}

// writeFolder writes the folder of the build as a tar.
func (b Build) writeFolder(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	err := t.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(b.Containerfile)), ModTime: time.Unix(0, 0)})
	if err == nil {
		_, err = io.WriteString(t, b.Containerfile)
	}
	if err == nil && b.Folder != "" {
		err = addFolder(ctx, t, b.Folder)
	}
	return errors.Join(err, t.Close())
}

// addFolder adds the files and links below a folder. It leaves out their owners: they
// belong to root in the image.
func addFolder(ctx context.Context, t *tar.Writer, folder string) error {
	return filepath.WalkDir(folder, func(file string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		name, relErr := filepath.Rel(folder, file)
		if err = errors.Join(err, relErr); err != nil || name == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		to := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if to, err = os.Readlink(file); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, to)
		if err != nil {
			return err
		}
		header.Name, header.Uid, header.Gid, header.Uname, header.Gname = filepath.ToSlash(name), 0, 0, "", ""
		if err := t.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(t, f)
		return err
	})
}

// readMessages copies the text of an engine's JSON messages to progress and
// returns the error that they report.
func readMessages(r io.Reader, progress io.Writer) error {
	decoder := json.NewDecoder(r)
	for {
		var m struct{ Stream, Status, Error string }
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the engine's answer: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		case m.Stream != "":
			_, _ = io.WriteString(progress, m.Stream) // losing a line of progress is no failure
		case m.Status != "":
			_, _ = io.WriteString(progress, m.Status+"\n")
		}
	}
}

// ReadFile reads a file of at most 4 KiB from an image: it copies the file out of
// a container that is never started.
func (e *Engine) ReadFile(ctx context.Context, image, file string) ([]byte, error) {
	made, err := e.client.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &api.Config{Image: image, Cmd: []string{"/bin/true"}, NetworkDisabled: true},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), made.ID) }()
	copied, err := e.client.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: file})
	if err != nil {
		return nil, err
	}
	defer func() { _ = copied.Content.Close() }()
	const limit = 4096
	t := tar.NewReader(copied.Content)
	if _, err := t.Next(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return io.ReadAll(io.LimitReader(t, limit))
}

// Untag removes a name from an image, and removes the image itself with its last name.
func (e *Engine) Untag(ctx context.Context, name string) error {
	_, err := e.client.ImageRemove(ctx, name, client.ImageRemoveOptions{})
	return err
}
