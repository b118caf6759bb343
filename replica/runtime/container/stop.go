package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/engine"
)

// Stop stops the daemon and removes its container.
func (r *Runtime) Stop(ctx context.Context, d runtime.Daemon) error {
	container, err := r.find(ctx, d.Role)
	if err == nil {
		err = r.end(ctx, container)
	}
	if err != nil && !errors.Is(err, engine.ErrNoContainer) {
		return fmt.Errorf("stopping %s: %w", d.Role, err)
	}
	if _, held, _ := daemon.LockOwner(daemon.PIDFile(d)); held {
		return nil // it runs in another runtime
	}
	return daemon.RemoveLeftovers(d)
}

func (r *Runtime) end(ctx context.Context, container engine.Container) error {
	if container.Running {
		if err := r.engine.Stop(ctx, container.ID, daemon.StopTimeout); err != nil {
			return err
		}
	}
	return r.engine.Remove(ctx, container.ID)
}

// End removes all other containers of the replica. It looks for containers until there are
// none: an engine can finish one for a start that was killed while others are removed. Podman
// refuses to remove the tools' container if another one has just joined its namespaces, so an
// error counts only if the containers are the same at the next try.
func (r *Runtime) End(ctx context.Context) error {
	var before []string
	for {
		left, err := r.engine.List(ctx, LabelWorkdir, r.workdir.Path())
		if err != nil {
			return fmt.Errorf("looking for containers of %s: %w", r.workdir.Path(), err)
		}
		if len(left) == 0 {
			break
		}
		var now []string
		for _, container := range left {
			now = append(now, container.ID)
		}
		slices.Sort(now)
		if err := r.endAll(ctx, left); err != nil && slices.Equal(now, before) {
			return err
		}
		before = now
	}
	r.mu.Lock()
	r.toolsID = ""
	r.mu.Unlock()
	return os.RemoveAll(r.tools.folder)
}

// endAll removes containers, the tools' container last: the others are in its PID namespace.
func (r *Runtime) endAll(ctx context.Context, left []engine.Container) (err error) {
	slices.SortFunc(left, func(a, b engine.Container) int { return stopOrder(a) - stopOrder(b) })
	for _, container := range left {
		if container.Labels[LabelRole] == roleTools {
			err = r.engine.Remove(ctx, container.ID) // the container has no data to save
		} else {
			err = r.end(ctx, container)
		}
		if err != nil {
			return fmt.Errorf("removing container %s: %w", container.Name, err)
		}
	}
	return nil
}

// stopOrder sorts containers for their end: clients before servers, the tools last.
func stopOrder(container engine.Container) int {
	role := container.Labels[LabelRole]
	switch {
	case role == roleTools:
		return 2
	case strings.HasPrefix(role, "ovsdb-server"):
		return 1
	default:
		return 0
	}
}
