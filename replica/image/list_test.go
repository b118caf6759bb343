package image_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

const report = "../../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"

// start starts a replica, which ends with the test.
func start(t *testing.T, wd *workdir.Dir, rt runtime.Runtime) {
	t.Helper()
	t.Cleanup(func() {
		if err := replica.Stop(context.Background(), wd, rt); err != nil {
			t.Error(err)
		}
	})
	if _, err := replica.Start(t.Context(), wd, rt, replica.Options{}); err != nil {
		t.Fatal(err)
	}
}

// stop returns a function that stops the replica of a workdir.
func stop(t *testing.T) func(path string) error {
	return func(path string) error {
		wd, err := workdir.Lock(path)
		if err != nil {
			return err
		}
		defer wd.Unlock()
		return replica.Stop(t.Context(), wd, choose.For(wd, "1").All(t.Context())...)
	}
}

// only returns the only image in a list whose name has a part.
func only(t *testing.T, name, part string) image.Listed {
	t.Helper()
	roots, err := replica.Roots()
	if err != nil {
		t.Fatal(err)
	}
	all, err := image.List(t.Context(), name, roots)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(i image.Listed) bool { return !strings.Contains(i.Name, part) })
	if len(all) != 1 {
		t.Fatalf("%d images are named %s: %+v", len(all), part, all)
	}
	return all[0]
}

// TestImageOfARunningReplicaIsKept adds an image of this host's tools for local processes,
// runs a replica in it, and removes it.
func TestImageOfARunningReplicaIsKept(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-trace", "ovn-detrace")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	host, err := build.FromHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	archived := filepath.Join(t.TempDir(), "host.tar")
	f, err := os.Create(archived)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(host.Write(t.Context(), f, "ovs-offline:host", "1"), f.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	added, err := s.Add(t.Context(), archived, image.AddOptions{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	i := only(t, choose.Process, "mine")
	expect.Equal(t, i.ID, added.ID)
	expect.Equal(t, i.OVS, host.Versions.OVS)
	expect.Equal(t, i.OVN, host.Versions.OVN)
	expect.Equal(t, i.Size, added.Size)
	expect.Equal(t, i.UsedBy, nil, "used by")
	wd := collected.Locked(t, report)
	start(t, wd, process.New(process.Options{Root: added.Root, Folders: wd.RuntimeFolders()}))
	if i = only(t, choose.Auto, "mine"); !slices.Equal(i.UsedBy, []string{wd.Path()}) {
		t.Errorf("used by %q", i.UsedBy)
	}
	all := []image.Listed{i}
	if _, err := image.Remove(t.Context(), all, "mine", nil); !errors.Is(err, image.ErrUsed) ||
		!strings.Contains(err.Error(), wd.Path()) {
		t.Errorf("removing an image that is used: %v", err)
	}
	if _, err := s.Find("mine"); err != nil {
		t.Error(err)
	}
	wd.Unlock()
	if _, err := image.Remove(t.Context(), all, i.ID, stop(t)); err != nil {
		t.Errorf("removing it by force: %v", err)
	}
	if _, err := s.Find("mine"); !errors.Is(err, runtime.ErrNoImage) {
		t.Errorf("after the removal: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(added.Root)); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	if running, err := replica.List(); err != nil ||
		slices.ContainsFunc(running, func(l replica.Listed) bool { return l.Workdir == wd.Path() }) {
		t.Errorf("the replica runs on: %+v %v", running, err)
	}
	if _, err := image.Remove(t.Context(), nil, "mine", nil); !errors.Is(err, runtime.ErrNoImage) {
		t.Error(err)
	}
}

// TestImagesOfEachEngine lists an image of an engine while a replica runs in it, and
// removes another.
func TestImagesOfEachEngine(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, r engines.Runtime) {
		t.Setenv("XDG_DATA_HOME", t.TempDir())
		wd := collected.Locked(t, report)
		rt := r.For(t, wd)
		i := only(t, r.Name, "ovs-offline:")
		if i.Runtime != r.Name || i.OVS == "" || i.OVN == "" || i.Size < 10e6 || i.ID == "" || i.Added.IsZero() ||
			len(i.UsedBy) > 0 {
			t.Errorf("%+v", i)
		}
		start(t, wd, rt)
		if i = only(t, choose.Auto, "ovs-offline:"); !slices.Equal(i.UsedBy, []string{wd.Path()}) {
			t.Errorf("used by %q", i.UsedBy)
		}
		if _, err := image.Remove(t.Context(), []image.Listed{i}, i.Name, nil); !errors.Is(err, image.ErrUsed) {
			t.Errorf("removing an image that is used: %v", err)
		}
		e, err := engine.Connect(t.Context(), r.Name)
		if err != nil {
			t.Fatal(err)
		}
		host, err := build.FromHost(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second := e.Repository() + ":second"
		if _, err := host.Load(t.Context(), e, second, "another version"); err != nil {
			t.Fatal(err)
		}
		i = only(t, r.Name, "ovs-offline:second")
		if _, err := image.Remove(t.Context(), []image.Listed{i}, "ovs-offline:second", nil); err != nil ||
			len(i.UsedBy) > 0 {
			t.Errorf("%+v: %v", i, err)
		}
		if left, err := e.InspectImage(t.Context(), second); !errors.Is(err, engine.ErrNoImage) {
			t.Errorf("after the removal: %+v %v", left, err)
		}
	})
}
