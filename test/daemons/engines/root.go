package engines

import (
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/test/daemons/ovs"
)

// HostArchive writes an image of this machine's tools in the format of `docker save`.
func HostArchive(t testing.TB, path string) {
	t.Helper()
	ovs.Need(t)
	host, err := build.FromHost(t.Context())
	if err != nil {
		t.Skip(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Write(t.Context(), f, "root:test", "test"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// HostImage returns an image for local processes of this machine's tools, and the
// XDG_DATA_HOME that holds it. The image is removed when the test ends; until then,
// XDG_DATA_HOME is set.
func HostImage(t testing.TB) (i image.Image, data string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	HostArchive(t, archive)
	data = t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	images, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if i, err = images.Add(t.Context(), "docker-archive:"+archive, image.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	return i, data
}
