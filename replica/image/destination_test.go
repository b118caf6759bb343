package image

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestAWrittenImageIsTheSame writes an image to each kind of destination, and reads it
// back.
func TestAWrittenImageIsTheSame(t *testing.T) {
	host := serve(t, unchanged)
	dir := t.TempDir()
	img := image(t, runtime.GOARCH)
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	for destination, source := range map[string]string{
		host + "/net/tools":                            host + "/net/tools:ovs-1",
		"docker://" + host + "/net/tools:mine":         host + "/net/tools:mine",
		"oci-archive:" + dir + "/oci.tar":              dir + "/oci.tar",
		"oci-archive:" + dir + "/named.tar:net/me:2":   "oci-archive:" + dir + "/named.tar:net/me:2",
		"oci-archive:" + dir + "/untagged.tar:me":      "oci-archive:" + dir + "/untagged.tar:me:ovs-1",
		"docker-archive:" + dir + "/docker.tar":        "docker-archive:" + dir + "/docker.tar:tools:ovs-1",
		"docker-archive:" + dir + "/docker2.tar:me:17": "docker-archive:" + dir + "/docker2.tar:me:17",
	} {
		d, err := ParseDestination(destination)
		if err != nil {
			t.Fatal(err)
		}
		written, err := d.Write(t.Context(), img, "tools", "ovs-1", false)
		if err != nil {
			t.Fatalf("%s: %v", destination, err)
		}
		if d.file == "" && !strings.HasPrefix(written, source+"@sha256:") || d.file != "" && written != d.file {
			t.Errorf("%s was written as %s", destination, written)
		}
		u, files, err := unpack(t, t.Context(), source)
		if err != nil || u.ID != id.String() || !maps.Equal(files, content) {
			t.Errorf("%s: %+v, %v, %v", source, u, files, err)
		}
	}
}

func TestBadDestinations(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "UPPER/x": "", "host/x:a:b": "", "./x.tar": "put oci-archive: or docker-archive: in front",
		"x.tar":        "in front",
		"oci-archive:": "the file name is missing", "docker-archive:": "the file name is missing",
		"host/x@sha256:" + strings.Repeat("0", 64): "",
	} {
		if _, err := ParseDestination(text); !errors.Is(err, ErrDestination) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestAFailedWriteLeavesNothing checks an interrupted write, a file that exists, and a
// registry that refuses.
func TestAFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	img := image(t, runtime.GOARCH)
	write := func(ctx context.Context, destination string) error {
		d, err := ParseDestination(destination)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Write(ctx, img, "tools", "1", false)
		return err
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := write(ended, "oci-archive:"+dir+"/oci.tar"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	host := serve(t, unchanged)
	if err := write(ended, host+"/tools"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if err := write(t.Context(), host+"/tools"); err == nil ||
		!strings.Contains(err.Error(), "log in with: podman login "+host) {
		t.Error(err)
	}
	kept := filepath.Join(dir, "kept.tar")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), "docker-archive:"+kept); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if text, _ := os.ReadFile(kept); string(text) != "mine" {
		t.Errorf("the file became %.20q", text)
	}
}
