package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"ovs-offline/replica/image"
	"ovs-offline/test/ovs"
)

// HostRoot returns a folder with the root file system of an image of this machine's
// tools. It ends with the test.
func HostRoot(t testing.TB) string {
	t.Helper()
	ovs.Need(t)
	host, err := image.FromHost(t.Context())
	if err != nil {
		t.Skip(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Write(t.Context(), f, "root:test", "test"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	files, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	root := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", root)
	unpack.Stdin = files
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}
