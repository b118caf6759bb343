package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
)

// engines are the names that Connect takes, in the order that it prefers.
func engines() []string { return []string{"podman", "docker"} }

// Connect connects to an engine by its name, or with "" to the first that
// answers.
func Connect(ctx context.Context, engine string) (Engine, error) {
	var failed []error
	for _, name := range engines() {
		if engine != "" && engine != name {
			continue
		}
		e, err := connect(ctx, name)
		if err == nil {
			return e, nil
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		return nil, fmt.Errorf("no engine %q makes images: podman and docker do", engine)
	}
	return nil, fmt.Errorf("an image is made in a container engine, and none answers: %w", errors.Join(failed...))
}

func connect(ctx context.Context, engine string) (Engine, error) {
	if engine == "docker" {
		return connectDocker(ctx)
	}
	return connectPodman(ctx)
}

// checkName tells what is wrong with a name for an image; "" is no name, and right.
func checkName(reference string) error {
	if reference == "" {
		return nil
	}
	if _, err := name.NewTag(reference); err != nil {
		return fmt.Errorf("%w: the name %q: %w", ErrBadBuild, reference, err)
	}
	return nil
}
