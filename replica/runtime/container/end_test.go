package container_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// refusing is an engine that refuses to remove a container while another one joins it, as
// podman does.
type refusing struct {
	engine.Engine // nil: End only lists, stops and removes
	left          []engine.Container
	late          int  // containers that are still to join
	always        bool // it refuses although none joins
	removals      int
}

var errDependency = errors.New("dependency exists")

func (e *refusing) List(context.Context, string, string) ([]engine.Container, error) {
	return slices.Clone(e.left), nil
}

func (e *refusing) Remove(_ context.Context, id string) error {
	e.removals++
	if e.late > 0 {
		e.left = append(e.left, engine.Container{ID: fmt.Sprint("late", e.late)})
		e.late--
		return errDependency
	}
	if e.always {
		return errDependency
	}
	e.left = slices.DeleteFunc(e.left, func(c engine.Container) bool { return c.ID == id })
	return nil
}

// TestEndRemovesWhatJoinsMeanwhile checks that End removes containers that an engine still makes
// for a killed start, and that a refusal without such a container is an error.
func TestEndRemovesWhatJoinsMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name           string
		e              refusing
		err            error
		left, removals int
	}{
		{"containers join", refusing{late: 3}, nil, 0, 7},
		{"the engine refuses after one has joined", refusing{late: 1, always: true}, errDependency, 2, 3},
		{"the engine refuses", refusing{always: true}, errDependency, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(wd.Unlock)
			c.e.left = []engine.Container{{ID: "tools", Labels: map[string]string{container.LabelRole: "tools"}}}
			if err := container.New(&c.e, "image", "test", wd).End(t.Context()); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			expect.Equal(t, len(c.e.left), c.left, "containers after the end")
			expect.Equal(t, c.e.removals, c.removals, "removals")
		})
	}
}
