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

// Stop stops d and removes its container.
func (r *Runtime) Stop(ctx context.Context, d runtime.Daemon) error {
	c, err := r.find(ctx, d.Role)
	if err == nil {
		err = r.end(ctx, c)
	}
	if err != nil && !errors.Is(err, engine.ErrNoContainer) {
		return fmt.Errorf("stopping %s: %w", d.Role, err)
	}
	if _, held, _ := daemon.LockOwner(daemon.PIDFile(d)); held {
		return nil // d runs in another runtime
	}
	return daemon.RemoveLeftovers(d)
}

func (r *Runtime) end(ctx context.Context, c engine.Container) error {
	if c.Running {
		if err := r.engine.Stop(ctx, c.ID, daemon.StopTimeout); err != nil {
			return err
		}
	}
	return r.engine.Remove(ctx, c.ID)
}

// End removes all other containers of the replica, that of the tools last: the
// others are in its PID namespace.
func (r *Runtime) End(ctx context.Context) error {
	left, err := r.engine.List(ctx, LabelWorkdir, r.workdir.Path())
	if err != nil {
		return fmt.Errorf("looking for containers of %s: %w", r.workdir.Path(), err)
	}
	slices.SortFunc(left, func(a, b engine.Container) int { return order(a) - order(b) })
	for _, c := range left {
		if c.Labels[LabelRole] == roleTools {
			err = r.engine.Remove(ctx, c.ID) // the container has no data to save
		} else {
			err = r.end(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("removing container %s: %w", c.Name, err)
		}
	}
	r.mu.Lock()
	r.toolsID = ""
	r.mu.Unlock()
	return os.RemoveAll(r.tools.folder)
}

// order sorts containers for their end: clients before servers, the tools last.
func order(c engine.Container) int {
	role := c.Labels[LabelRole]
	switch {
	case role == roleTools:
		return 2
	case strings.HasPrefix(role, "ovsdb-server"):
		return 1
	default:
		return 0
	}
}
