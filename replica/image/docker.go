package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"ovs-offline/replica/runtime/docker"
)

// Docker is a docker daemon.
type Docker struct{ cli *client.Client }

// connectDocker connects to the daemon that docker's own client would use.
func connectDocker(ctx context.Context) (*Docker, error) {
	cli, err := docker.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Docker{cli}, nil
}

// Name is "docker".
func (d *Docker) Name() string { return "docker" }

// Repository is the plain name.
func (d *Docker) Repository() string { return "ovs-offline" }

// Load loads an archive.
func (d *Docker) Load(ctx context.Context, archive io.Reader) error {
	result, err := d.cli.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer result.Close()
	return readMessages(result, io.Discard)
}

// Inspect tells of an image.
func (d *Docker) Inspect(ctx context.Context, name string) (Made, error) {
	result, err := d.cli.ImageInspect(ctx, name)
	if err != nil {
		return Made{}, err
	}
	made := Made{ID: result.ID, Size: result.Size}
	if result.Config != nil {
		made.Labels = result.Config.Labels
	}
	return made, nil
}

// Build builds an image.
func (d *Docker) Build(ctx context.Context, b containerBuild, progress io.Writer) error {
	var context bytes.Buffer
	t := tar.NewWriter(&context)
	err := t.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(b.containerfile)), ModTime: epoch})
	if err == nil {
		_, err = io.WriteString(t, b.containerfile)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	options := client.ImageBuildOptions{
		Tags: []string{b.name}, Labels: b.labels, NoCache: b.noCache, Remove: true, ForceRemove: true,
		BuildArgs: map[string]*string{}, NetworkMode: b.network, Context: &context,
	}
	for k, v := range b.args {
		options.BuildArgs[k] = &v
	}
	if b.platform != "" {
		os, arch, variant := splitPlatform(b.platform)
		options.Platforms = []ocispec.Platform{{OS: os, Architecture: arch, Variant: variant}}
	}
	result, err := d.cli.ImageBuild(ctx, &context, options)
	if err != nil {
		return err
	}
	defer result.Body.Close()
	return readMessages(result.Body, progress)
}

// readMessages reads what the daemon reports as JSON until it has done, and
// returns the error that it may have told there.
func readMessages(r io.Reader, progress io.Writer) error {
	decoder := json.NewDecoder(r)
	for {
		var m struct{ Stream, Status, Error string }
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading docker's answer: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		case m.Stream != "":
			io.WriteString(progress, m.Stream)
		case m.Status != "":
			io.WriteString(progress, m.Status+"\n")
		}
	}
}

// ReadFile makes a container that never runs, and copies from it.
func (d *Docker) ReadFile(ctx context.Context, name, path string) ([]byte, error) {
	made, err := d.cli.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: name, Cmd: []string{"/bin/true"}, NetworkDisabled: true},
	})
	if err != nil {
		return nil, err
	}
	defer d.remove(context.WithoutCancel(ctx), made.ID)
	result, err := d.cli.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: path})
	if err != nil {
		return nil, err
	}
	defer result.Content.Close()
	return oneFile(result.Content, path)
}

func (d *Docker) remove(ctx context.Context, id string) {
	_, _ = d.cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
}

// Untag removes a name.
func (d *Docker) Untag(ctx context.Context, name string) error {
	_, err := d.cli.ImageRemove(ctx, name, client.ImageRemoveOptions{})
	return err
}

// oneFile reads the first file of a tar, which is a small one.
func oneFile(r io.Reader, path string) ([]byte, error) {
	const most = 4096
	t := tar.NewReader(r)
	if _, err := t.Next(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return io.ReadAll(io.LimitReader(t, most))
}
