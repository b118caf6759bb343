package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	buildah "github.com/containers/buildah/define"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/domain/entities/types"
	"github.com/containers/podman/v5/pkg/specgen"
)

// Repository is below localhost, where podman keeps images that come from no registry.
func (*podman) Repository() string { return "localhost/" + Repository }

func (p *podman) Images(ctx context.Context, repository string) ([]Image, error) {
	list, err := images.List(p.call(ctx), nil)
	if err != nil {
		return nil, err
	}
	var found []Image
	for _, summary := range list {
		image := Image{ID: digest(summary.ID), Size: summary.Size, Labels: summary.Labels, Created: time.Unix(summary.Created, 0)}
		found = append(found, named(image, summary.RepoTags, repository)...)
	}
	return found, nil
}

// InspectImage asks first whether the image exists: podman 4.3 answers an inspection of
// a missing image like a failed one.
func (p *podman) InspectImage(ctx context.Context, name string) (Image, error) {
	exists, err := images.Exists(p.call(ctx), name, nil)
	if err != nil {
		return Image{}, err
	}
	if !exists {
		return Image{}, fmt.Errorf("%s: %w", name, ErrNoImage)
	}
	found, err := images.GetImage(p.call(ctx), name, nil)
	if err != nil {
		return Image{}, err
	}
	return Image{Name: fullName(name, found.RepoTags), ID: digest(found.ID), Size: found.Size, Labels: found.Labels, Architecture: found.Architecture}, nil
}

func (p *podman) Load(ctx context.Context, archive io.Reader) error {
	_, err := images.Load(p.call(ctx), archive)
	return err
}

func (p *podman) Save(ctx context.Context, id string, w io.Writer) error {
	return images.Export(p.call(ctx), []string{id}, w, new(images.ExportOptions).WithFormat("docker-archive"))
}

// Build leaves it to the bindings to pack the folder.
func (p *podman) Build(ctx context.Context, build Build, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "ovs-offline-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "Containerfile")
	if err := os.WriteFile(file, []byte(build.Containerfile), 0o600); err != nil {
		return err
	}
	options := buildah.BuildOptions{
		ContextDirectory: cmp.Or(build.Folder, dir), Output: build.Name, NoCache: build.NoCache, Layers: true, Out: progress,
		PullPolicy: buildah.PullIfMissing, OutputFormat: buildah.Dockerv2ImageManifest,
		RemoveIntermediateCtrs: true, ForceRmIntermediateCtrs: true,
	}
	for name, value := range build.Labels {
		options.Labels = append(options.Labels, name+"="+value)
	}
	if build.Platform != "" {
		system, architecture, variant := build.platform()
		options.Platforms = append(options.Platforms, struct{ OS, Arch, Variant string }{system, architecture, variant})
	}
	if build.Network == "host" {
		options.ConfigureNetwork = buildah.NetworkEnabled
		options.NamespaceOptions = buildah.NamespaceOptions{{Name: "network", Host: true}}
	}
	_, err = images.Build(p.call(ctx), []string{file}, types.BuildOptions{BuildOptions: options})
	return errors.Join(ctx.Err(), err)
}

func (p *podman) ReadFile(ctx context.Context, image, file string) ([]byte, error) {
	generator := specgen.NewSpecGenerator(image, false)
	generator.Command, generator.NetNS = []string{"/bin/true"}, specgen.Namespace{NSMode: specgen.NoNetwork}
	made, err := containers.CreateWithSpec(p.call(ctx), generator, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Remove(context.WithoutCancel(ctx), made.ID) }()
	reader, writer := io.Pipe()
	defer reader.Close() // ends the copy
	copied, err := containers.CopyToArchive(p.call(ctx), made.ID, file, writer)
	if err != nil {
		return nil, err
	}
	go func() { writer.CloseWithError(copied()) }()
	return fileOf(reader, file)
}

// Untag removes the image by one of its names: podman removes what has no other name.
func (p *podman) Untag(ctx context.Context, name string) error {
	_, failed := images.Remove(p.call(ctx), []string{name}, nil)
	return errors.Join(failed...)
}
