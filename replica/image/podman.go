//go:build remote && containers_image_openpgp

package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/containers/buildah/define"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/domain/entities/types"
	"github.com/containers/podman/v5/pkg/specgen"

	"ovs-offline/replica/runtime/podman"
)

// Podman is podman's service.
type Podman struct{ conn context.Context }

// connectPodman connects to the service that podman's own clients would use.
func connectPodman(ctx context.Context) (Engine, error) {
	conn, err := podman.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Podman{conn}, nil
}

// call is the context of one call: the bindings take the connection from it.
func (p *Podman) call(ctx context.Context) (context.Context, context.CancelFunc) {
	c, cancel := context.WithCancel(p.conn)
	stop := context.AfterFunc(ctx, cancel)
	return c, func() { stop(); cancel() }
}

// Name is "podman".
func (p *Podman) Name() string { return "podman" }

// Repository is on localhost, where podman has what comes from no registry.
func (p *Podman) Repository() string { return "localhost/ovs-offline" }

// Load loads an archive.
func (p *Podman) Load(ctx context.Context, archive io.Reader) error {
	c, cancel := p.call(ctx)
	defer cancel()
	_, err := images.Load(c, archive)
	return errors.Join(ctx.Err(), err)
}

// Inspect tells of an image.
func (p *Podman) Inspect(ctx context.Context, name string) (Made, error) {
	c, cancel := p.call(ctx)
	defer cancel()
	report, err := images.GetImage(c, name, &images.GetOptions{})
	if err != nil {
		return Made{}, err
	}
	return Made{ID: "sha256:" + report.ID, Size: report.Size, Labels: report.Labels}, nil
}

// Build builds an image. The bindings make the context's tar from a folder.
func (p *Podman) Build(ctx context.Context, b containerBuild, progress io.Writer) error {
	c, cancel := p.call(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "ovs-offline-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "Containerfile")
	if err := os.WriteFile(file, []byte(b.containerfile), 0o600); err != nil {
		return err
	}
	options := types.BuildOptions{BuildOptions: define.BuildOptions{
		ContextDirectory: dir, Output: b.name, Args: b.args, NoCache: b.noCache, Out: progress, Err: progress,
		CommonBuildOpts: &define.CommonBuildOptions{}, PullPolicy: define.PullIfMissing,
		RemoveIntermediateCtrs: true, ForceRmIntermediateCtrs: true, Layers: true,
		OutputFormat: define.Dockerv2ImageManifest,
	}}
	for k, v := range b.labels {
		options.Labels = append(options.Labels, k+"="+v)
	}
	if b.platform != "" {
		var platform struct{ OS, Arch, Variant string }
		platform.OS, platform.Arch, platform.Variant = splitPlatform(b.platform)
		options.Platforms = append(options.Platforms, platform)
	}
	if b.network == "host" {
		options.ConfigureNetwork = define.NetworkEnabled
		options.NamespaceOptions = define.NamespaceOptions{{Name: "network", Host: true}}
	}
	_, err = images.Build(c, []string{file}, options)
	return errors.Join(ctx.Err(), err)
}

// ReadFile makes a container that never runs, and copies from it.
func (p *Podman) ReadFile(ctx context.Context, name, path string) ([]byte, error) {
	c, cancel := p.call(ctx)
	defer cancel()
	spec := specgen.NewSpecGenerator(name, false)
	spec.Command = []string{"/bin/true"}
	made, err := containers.CreateWithSpec(c, spec, &containers.CreateOptions{})
	if err != nil {
		return nil, err
	}
	defer p.remove(made.ID)
	r, w := io.Pipe()
	defer r.Close()
	copying, err := containers.CopyToArchive(c, made.ID, path, w)
	if err != nil {
		return nil, err
	}
	go func() { w.CloseWithError(copying()) }()
	return oneFile(r, path)
}

// remove is done even where the call was interrupted.
func (p *Podman) remove(id string) {
	_, _ = containers.Remove(p.conn, id, new(containers.RemoveOptions).WithForce(true))
}

// Untag removes a name.
func (p *Podman) Untag(ctx context.Context, name string) error {
	c, cancel := p.call(ctx)
	defer cancel()
	_, failed := images.Remove(c, []string{name}, &images.RemoveOptions{})
	return errors.Join(failed...)
}
