package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzDocuments checks that no manifest, index or configuration makes the readers of
// images fail in another way than with an error.
func FuzzDocuments(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0", 64)
	f.Add(`[{"Config":"config","RepoTags":["a:b"],"Layers":["layer"]}]`, "manifest.json",
		`{"rootfs":{"diff_ids":["`+digest+`"]}}`)
	f.Add(`[{"Config":"config","Layers":["layer","config"]},null]`, "manifest.json", "null")
	f.Add(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"`+digest+`"}]}`, "index.json",
		"{}")
	f.Add(`{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"`+digest+`"}]}`, "index.json",
		"{}")
	f.Fuzz(func(t *testing.T, document, name, config string) {
		if strings.ContainsRune(name, 0) || len(name) > 90 {
			t.Skip("package tar writes no such name")
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "x.tar")
		if err := os.WriteFile(path, tarOf(t, name, document, "config", config, "layer", "x",
			"blobs/sha256/"+strings.Repeat("0", 64), document), 0o600); err != nil {
			t.Fatal(err)
		}
		options := Options{Scratch: dir, Limits: limits()}
		img, err := Open(t.Context(), path, options)
		if err != nil {
			return
		}
		defer img.Close()
		_, _ = img.Unpack(t.Context(), t.TempDir(), options)
	})
}
