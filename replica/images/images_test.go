package images_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/image"
	"ovs-offline/replica/images"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/runtime/process/store"
	"ovs-offline/test/engines"
	"ovs-offline/test/ovs"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

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

// collected returns a workdir with everything that a report holds.
func collected(t *testing.T) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	if _, _, err := collect.Collect(t.Context(), wd, collect.SosReport{Path: report}, collect.Options{}); err != nil {
		t.Fatal(err)
	}
	return wd
}

// only returns the only image in a list whose name has a part.
func only(t *testing.T, name, part string) images.Image {
	t.Helper()
	all, err := images.List(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(i images.Image) bool { return !strings.Contains(i.Name, part) })
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
	host, err := image.FromHost(t.Context())
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
	s, err := store.Open()
	if err != nil {
		t.Fatal(err)
	}
	added, err := s.Add(t.Context(), archived, store.AddOptions{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	i := only(t, choose.Process, "mine")
	if i.ID != added.ID || i.OVS != host.Versions.OVS || i.OVN != host.Versions.OVN || i.Size != added.Size || len(i.UsedBy) > 0 {
		t.Errorf("%+v", i)
	}
	wd := collected(t)
	start(t, wd, process.New(process.Options{Root: added.Root, Folders: wd.RuntimeFolders()}))
	if i = only(t, choose.Auto, "mine"); !slices.Equal(i.UsedBy, []string{wd.Path()}) {
		t.Errorf("used by %q", i.UsedBy)
	}
	all := []images.Image{i}
	if _, err := images.Remove(t.Context(), all, "mine", false, "1"); !errors.Is(err, images.ErrUsed) || !strings.Contains(err.Error(), wd.Path()) {
		t.Errorf("removing an image that is used: %v", err)
	}
	if _, err := s.Find("mine"); err != nil {
		t.Error(err)
	}
	wd.Unlock()
	if _, err := images.Remove(t.Context(), all, i.ID, true, "1"); err != nil {
		t.Errorf("removing it by force: %v", err)
	}
	if _, err := s.Find("mine"); !errors.Is(err, runtime.ErrNoImage) {
		t.Errorf("after the removal: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(added.Root)); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	if running, err := replica.List(); err != nil || slices.ContainsFunc(running, func(l replica.Listed) bool { return l.Workdir == wd.Path() }) {
		t.Errorf("the replica runs on: %+v %v", running, err)
	}
	if _, err := images.Remove(t.Context(), nil, "mine", false, "1"); !errors.Is(err, runtime.ErrNoImage) {
		t.Error(err)
	}
}

// TestImagesOfEachEngine lists an image of an engine while a replica runs in it, and
// removes another.
func TestImagesOfEachEngine(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, r engines.Runtime) {
		t.Setenv("XDG_DATA_HOME", t.TempDir())
		wd := collected(t)
		rt := r.For(t, wd)
		i := only(t, r.Name, "ovs-offline:")
		if i.Runtime != r.Name || i.OVS == "" || i.OVN == "" || i.Size < 10e6 || i.ID == "" || i.Added.IsZero() || len(i.UsedBy) > 0 {
			t.Errorf("%+v", i)
		}
		start(t, wd, rt)
		if i = only(t, choose.Auto, "ovs-offline:"); !slices.Equal(i.UsedBy, []string{wd.Path()}) {
			t.Errorf("used by %q", i.UsedBy)
		}
		if _, err := images.Remove(t.Context(), []images.Image{i}, i.Name, false, "1"); !errors.Is(err, images.ErrUsed) {
			t.Errorf("removing an image that is used: %v", err)
		}
		e, err := engine.Connect(t.Context(), r.Name)
		if err != nil {
			t.Fatal(err)
		}
		host, err := image.FromHost(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second := e.Repository() + ":second"
		if _, err := host.Load(t.Context(), e, second, "another version"); err != nil {
			t.Fatal(err)
		}
		i = only(t, r.Name, "ovs-offline:second")
		if _, err := images.Remove(t.Context(), []images.Image{i}, "ovs-offline:second", false, "1"); err != nil || len(i.UsedBy) > 0 {
			t.Errorf("%+v: %v", i, err)
		}
		if left, err := e.FindImage(t.Context(), second); err != nil || left != "" {
			t.Errorf("after the removal: %q %v", left, err)
		}
	})
}
