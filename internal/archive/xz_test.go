package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mholt/archives"

	"ovs-offline/test/daemons/ovs"
)

// packXz compresses text with xz and the given options.
func packXz(t *testing.T, text []byte, options ...string) []byte {
	t.Helper()
	cmd := exec.Command("xz", append([]string{"-c"}, options...)...)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func needXz(t *testing.T) {
	t.Helper()
	ovs.Need(t, "xz")
	if _, ok := findXz(t.Context()); !ok {
		t.Skip("there is no usable xz here")
	}
}

// someText returns 600 kB that compress to about a third.
func someText() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 600_000)
	for i := range text {
		text[i] = "0123456"[random.IntN(7)]
	}
	return text
}

// TestXzProcessEqualsTheLibrary checks that the output, and the errors for truncated and
// damaged files, do not depend on whether xz is installed.
func TestXzProcessEqualsTheLibrary(t *testing.T) {
	needXz(t)
	text := someText()
	one, blocks := packXz(t, text, "-T1"), packXz(t, text, "-T2", "--block-size=100KiB")
	flipped := bytes.Clone(one)
	flipped[len(flipped)/2] ^= 0x10
	flippedBlocks := bytes.Clone(blocks)
	flippedBlocks[len(flippedBlocks)/2] ^= 0x10
	badIndex := bytes.Clone(one)
	badIndex[len(badIndex)-20] ^= 0x10
	for name, packed := range map[string][]byte{
		"one block": one, "many blocks": blocks, "two streams": append(bytes.Clone(one), blocks...),
		"padded":       append(bytes.Clone(one), 0, 0, 0, 0),
		"two, padded":  append(append(bytes.Clone(one), 0, 0, 0, 0), blocks...),
		"badly padded": append(bytes.Clone(one), 0, 0), "text behind it": append(bytes.Clone(one), "some text behind"...),
		"no check": packXz(t, text, "--check=none"), "sha256": packXz(t, text, "--check=sha256"),
		"crc32":    packXz(t, text, "--check=crc32"),
		"filtered": packXz(t, text, "--x86", "--lzma2"), "a dictionary of 64 MiB": packXz(t, text, "--lzma2=dict=64MiB"),
		"flipped": flipped, "flipped in a block": flippedBlocks, "a bad index": badIndex,
		"half": one[:len(one)/2], "half of the blocks": blocks[:len(blocks)/2], "without its end": one[:len(one)-5],
		"without its index":  one[:len(one)-30],
		"the second one cut": append(bytes.Clone(one), one[:len(one)/2]...), "a header": one[:12],
		"a huge dictionary": append([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x28\x00\x00\x00"),
			make([]byte, 4096)...),
	} {
		t.Run(name, func(t *testing.T) {
			got, gotErr := readXz(t, openXz, packed)
			want, wantErr := readXz(t, func(_ context.Context, r io.Reader) (io.ReadCloser,
				error) {
				return archives.Xz{}.OpenReader(r)
			}, packed)
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("xz returns %v, the library %v", gotErr, wantErr)
			}
			if wantErr == nil && !bytes.Equal(got, want) {
				t.Errorf("%d bytes, the library has %d", len(got), len(want))
			}
			// For a damaged file, one of them may return more data before it fails.
			if n := min(len(got), len(want)); !bytes.Equal(got[:n], want[:n]) {
				t.Errorf("the first %d bytes differ", n)
			}
			if got, want := message(gotErr), message(wantErr); got != want {
				t.Errorf("xz: %q (%v), the library: %q (%v)", got, gotErr, want, wantErr)
			}
		})
	}
}

// message returns the error that the user sees.
func message(err error) string {
	switch readError := readError(err, true, 0); {
	case readError == nil:
		return "whole"
	case errors.Is(err, io.ErrUnexpectedEOF) || bytes.Contains([]byte(readError.Error()), []byte("cut off")):
		return "cut off"
	default:
		return "broken"
	}
}

func readXz(t *testing.T, open func(context.Context, io.Reader) (io.ReadCloser, error), packed []byte) ([]byte, error) {
	t.Helper()
	in, err := open(t.Context(), bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// TestXzProcessEndsWithItsReader checks that xz ends with its reader, its source and
// its context.
func TestXzProcessEndsWithItsReader(t *testing.T) {
	needXz(t)
	packed := packXz(t, someText(), "-T1")
	broken := errors.New("the disk is broken")
	x, err := openXz(t.Context(), io.MultiReader(bytes.NewReader(packed[:len(packed)/2]), failing{broken}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, x); !errors.Is(err, broken) {
		t.Errorf("a source that can't be read: %v", err)
	}
	source := &endless{packed: packed}
	if x, err = openXz(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(x, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	x.Close()
	source.closed = true // a read after this is a race, and fails the test
	ctx, cancel := context.WithCancel(t.Context())
	if x, err = openXz(ctx, &endless{packed: packed}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, x); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	x.Close()
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// endless is a reader of one stream after the other.
type endless struct {
	packed []byte
	at     int
	closed bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.closed {
		panic("read after Close")
	}
	n := copy(p, e.packed[e.at:])
	e.at = (e.at + n) % len(e.packed)
	return n, nil
}

// TestUnsuitableXzIsNotUsed checks that an xz that does not accept our arguments is not
// used.
func TestUnsuitableXzIsNotUsed(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "xz"), []byte("#!/bin/sh\necho 'xz: unrecognized option' >&2\nexit 1\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if path, ok := findXz(t.Context()); ok {
		t.Errorf("%s is taken", path)
	}
	packed, err := os.ReadFile("../../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := readXz(t, openXz, packed); err != nil || !isTar(text) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
