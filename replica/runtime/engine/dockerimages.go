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
	"path/filepath"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func (*docker) Repository() string { return Repository }

func (d *docker) Images(ctx context.Context, repository string) ([]Image, error) {
	list, err := d.client.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return nil, err
	}
	var found []Image
	for _, summary := range list.Items {
		image := Image{ID: summary.ID, Size: summary.Size, Labels: summary.Labels, Created: time.Unix(summary.Created, 0)}
		found = append(found, named(image, summary.RepoTags, repository)...)
	}
	return found, nil
}

func (d *docker) InspectImage(ctx context.Context, name string) (Image, error) {
	found, err := d.client.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return Image{}, fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	if err != nil {
		return Image{}, err
	}
	image := Image{Name: fullName(name, found.RepoTags), ID: found.ID, Size: found.Size, Architecture: found.Architecture}
	if found.Config != nil {
		image.Labels = found.Config.Labels
	}
	return image, nil
}

func (d *docker) Load(ctx context.Context, archive io.Reader) error {
	result, err := d.client.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer result.Close()
	return readMessages(result, io.Discard)
}

func (d *docker) Save(ctx context.Context, id string, w io.Writer) error {
	saved, err := d.client.ImageSave(ctx, []string{id})
	if err != nil {
		return err
	}
	defer saved.Close()
	_, err = io.Copy(w, saved)
	return err
}

func (d *docker) Build(ctx context.Context, build Build, progress io.Writer) error {
	folder, writer := io.Pipe()
	defer folder.Close() // ends the writer if the engine stops reading
	go func() { writer.CloseWithError(build.writeFolder(ctx, writer)) }()
	options := client.ImageBuildOptions{
		Tags: []string{build.Name}, Labels: build.Labels, NoCache: build.NoCache, Remove: true, ForceRemove: true,
		NetworkMode: build.Network,
	}
	if build.Platform != "" {
		system, architecture, variant := build.platform()
		options.Platforms = []ocispec.Platform{{OS: system, Architecture: architecture, Variant: variant}}
	}
	result, err := d.client.ImageBuild(ctx, folder, options)
	if err != nil {
		return err
	}
	defer func() { _ = result.Body.Close() }()
	return errors.Join(ctx.Err(), readMessages(result.Body, progress))
}

// writeFolder writes the folder of the build as a tar.
func (b Build) writeFolder(ctx context.Context, w io.Writer) error {
	writer := tar.NewWriter(w)
	err := writer.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(b.Containerfile)), ModTime: time.Unix(0, 0)})
	if err == nil {
		_, err = io.WriteString(writer, b.Containerfile)
	}
	if err == nil && b.Folder != "" {
		err = addFolder(ctx, writer, b.Folder)
	}
	return errors.Join(err, writer.Close())
}

// addFolder adds the files and links below a folder. It leaves out their owners: they
// belong to root in the image.
func addFolder(ctx context.Context, writer *tar.Writer, folder string) error {
	return filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		name, relErr := filepath.Rel(folder, file)
		if err = errors.Join(err, relErr); err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
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
		if err := writer.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(writer, f)
		return err
	})
}

// readMessages copies the text of an engine's JSON messages to progress and
// returns the error that they report.
func readMessages(r io.Reader, progress io.Writer) error {
	decoder := json.NewDecoder(r)
	for {
		var message struct{ Stream, Status, Error string }
		switch err := decoder.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the engine's answer: %w", err)
		case message.Error != "":
			return errors.New(message.Error)
		case message.Stream != "":
			_, _ = io.WriteString(progress, message.Stream) // losing a line of progress is not a failure
		case message.Status != "":
			_, _ = io.WriteString(progress, message.Status+"\n")
		}
	}
}

func (d *docker) ReadFile(ctx context.Context, image, file string) ([]byte, error) {
	made, err := d.client.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &api.Config{Image: image, Cmd: []string{"/bin/true"}, NetworkDisabled: true},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Remove(context.WithoutCancel(ctx), made.ID) }()
	copied, err := d.client.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: file})
	if err != nil {
		return nil, err
	}
	defer func() { _ = copied.Content.Close() }()
	return fileOf(copied.Content, file)
}

func (d *docker) Untag(ctx context.Context, name string) error {
	_, err := d.client.ImageRemove(ctx, name, client.ImageRemoveOptions{})
	return err
}
