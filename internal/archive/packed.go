package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/mholt/archives"
)

// packed is a compression. It is detected by the first bytes of a file, never by its name.
type packed int

const (
	packedNot packed = iota
	packedXz
	packedGzip
	packedBzip2
	packedZstd
)

func packing(start []byte) packed {
	switch {
	case bytes.HasPrefix(start, []byte("\xfd7zXZ\x00")):
		return packedXz
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return packedGzip
	case bytes.HasPrefix(start, []byte("BZh")):
		return packedBzip2
	case bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		return packedZstd
	}
	return packedNot
}

func (p packed) open(r io.Reader) (io.ReadCloser, error) {
	switch p {
	case packedXz:
		return archives.Xz{}.OpenReader(r)
	case packedGzip:
		return archives.Gz{}.OpenReader(r)
	case packedBzip2:
		return archives.Bz2{}.OpenReader(r)
	default:
		return archives.Zstd{}.OpenReader(r)
	}
}

// isEncrypted reports whether gpg wrote the file (RFC 9580): it begins with a
// session key for a password or a public key, or with text armor.
func isEncrypted(name string, start []byte) bool {
	for _, suffix := range []string{".gpg", ".pgp"} {
		if strings.HasSuffix(name, suffix) && len(start) > 0 && start[0]&0x80 != 0 {
			return true
		}
	}
	return bytes.HasPrefix(start, []byte("\x8c\x0d\x04")) || bytes.HasPrefix(start, []byte("-----BEGIN PGP MESSAGE-----"))
}

func withoutSuffix(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// peek returns how many compressed bytes contain the first block, from which the
// content is detected: up to 900 kB for bzip2, 128 kB for zstd.
func (p packed) peek() int {
	if p == packedBzip2 {
		return 1 << 20
	}
	return 1 << 18
}

// takePacked reads a compressed file: a tar archive, or one file.
func (r *reading) takePacked(how packed, name, below string, in io.Reader, depth int) (content, error) {
	raw := bufio.NewReaderSize(in, how.peek())
	peeked, err := raw.Peek(how.peek())
	if err != nil && !errors.Is(err, io.EOF) {
		return nothing, cannotRead(err)
	}
	start := unpackStart(how, peeked)
	switch {
	case isTar(start):
		return anArchive, r.packedArchive(how, raw, len(peeked), below, depth)
	case how == packedGzip && bytes.HasPrefix(start, []byte("OVSDB ")) && r.want(name, start):
		// ovsdb reads gzip, also where it is truncated: databases stay compressed.
		return aFile, r.keep(name, raw)
	case len(start) > 0 && r.want(name, start):
		return aFile, r.packedFile(how, name, raw, len(peeked))
	case depth == 0:
		return nothing, r.unknownPacked(how, raw)
	}
	return nothing, nil
}

// unpackStart decompresses the beginning of a file as far as possible.
func unpackStart(how packed, raw []byte) []byte {
	in, err := how.open(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	defer in.Close()
	start := make([]byte, startSize)
	n, _ := io.ReadFull(in, start) // a short start is enough
	return start[:n]
}

// unknownPacked returns why a compressed source is no archive: it contains
// something else, or is cut off before that is known.
func (r *reading) unknownPacked(how packed, raw io.Reader) error {
	stream := &meter{Reader: raw}
	in, err := how.open(stream)
	if err == nil {
		defer in.Close()
		_, err = io.CopyN(io.Discard, in, tarBlock)
	}
	if err != nil && !errors.Is(err, io.EOF) && stream.n >= tarBlock {
		return readError(err, stream.ended, 0)
	}
	return &NotArchiveError{"no tar archive in it"}
}

// unpack opens a compressed file that has at least peeked bytes.
func (r *reading) unpack(how packed, raw io.Reader, peeked int) (io.ReadCloser, error) {
	if how == packedXz && peeked >= largeXz {
		return openXz(r.ctx, raw)
	}
	return how.open(raw)
}

func (r *reading) packedFile(how packed, name string, raw io.Reader, peeked int) error {
	in, err := r.unpack(how, raw, peeked)
	if err != nil {
		return cannotRead(err)
	}
	defer in.Close()
	if err := r.keep(name, r.limits.Unpacked(in)); err != nil {
		return cannotRead(err)
	}
	return nil
}

// readError adds to err how far the archive could be read, and what to do.
func readError(err error, ended bool, entries int) error {
	var spool errSpool
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &spool), errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), ended && strings.Contains(err.Error(), "truncated"): // the wording of xz
		return fmt.Errorf("is cut off after %d of its files: copy it again and compare its sha256", entries)
	default:
		return fmt.Errorf("cannot be read beyond its file %d: %w: copy it again and compare its sha256", entries, err)
	}
}

func cannotRead(err error) error {
	var spool errSpool
	if errors.Is(err, context.Canceled) || errors.As(err, &spool) || errors.Is(err, ErrLimit) {
		return err
	}
	return fmt.Errorf("cannot be read: %w: copy it again and compare its sha256", err)
}

// meter counts the bytes that go through a reader, and notes its end.
type meter struct {
	io.Reader
	n     int64
	ended bool
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.n += int64(n)
	m.ended = m.ended || errors.Is(err, io.EOF)
	return n, err
}
