// Package files reads and writes files for tests, and fails the test on an error.
package files

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file, and makes the folders above it.
func Write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Gzip returns a text as gzip writes it.
func Gzip(tb testing.TB, text []byte) []byte {
	tb.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// Zip returns a zip archive of files by their names.
func Zip(tb testing.TB, files map[string]string) string {
	tb.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for name, text := range files {
		file, err := w.Create(name)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.String()
}

// Read returns the content of a file.
func Read(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Only returns the one file that matches a pattern.
func Only(tb testing.TB, pattern string) string {
	tb.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		tb.Fatalf("%s matches %q, not one file (%v)", pattern, found, err)
	}
	return found[0]
}
