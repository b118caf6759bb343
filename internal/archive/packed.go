package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mholt/archives"
)

// packing returns the compression of a file, nil for none. It is detected by the
// first bytes, never by the name.
func packing(start []byte) archives.Decompressor {
	switch {
	case bytes.HasPrefix(start, []byte("\xfd7zXZ\x00")):
		return archives.Xz{}
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return archives.Gz{}
	case bytes.HasPrefix(start, []byte("BZh")):
		return archives.Bz2{}
	case bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		return archives.Zstd{}
	}
	return nil
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

// takePacked reads a compressed file: a tar archive, or one file.
func (r *reading) takePacked(how archives.Decompressor, name, below string, in io.Reader, depth int) (content, error) {
	block := 1 << 18 // contains the first block of a file, by which its content is detected
	if _, isBzip2 := how.(archives.Bz2); isBzip2 {
		block = 1 << 20
	}
	raw := bufio.NewReaderSize(in, block)
	peeked, err := raw.Peek(block)
	if err != nil && !errors.Is(err, io.EOF) {
		return nothing, cannotRead(err)
	}
	start := unpackStart(how, peeked)
	_, isGzip := how.(archives.Gz)
	if isTar(start) {
		return anArchive, r.packedArchive(how, raw, len(peeked), below, depth)
	}
	keep := Leave
	if len(start) > 0 {
		keep = r.want(name, start)
	}
	switch {
	case keep == TakeAside, keep == Take && isGzip && bytes.HasPrefix(start, []byte("OVSDB ")):
		// Databases stay compressed: package ovsdb/file reads gzip.
		return r.takeFile(keep, name, raw)
	case keep == Take:
		return aFile, r.packedFile(how, name, raw, len(peeked))
	case depth == 0:
		return nothing, r.unknownPacked(how, raw)
	}
	return nothing, nil
}

// Decompress returns a reader of the content of r, and whether r is compressed. Another
// goroutine may read r until the returned reader is closed.
func Decompress(ctx context.Context, r io.Reader) (content io.ReadCloser, compressed bool, err error) {
	buffered := bufio.NewReaderSize(r, largeXz)
	start, err := buffered.Peek(startSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch how := packing(start).(type) {
	case nil:
		return io.NopCloser(buffered), false, nil
	case archives.Xz:
		content, err = openXz(ctx, buffered)
	default:
		content, err = how.OpenReader(buffered)
	}
	return content, true, err
}

// unpackStart decompresses the beginning of a file as far as possible.
func unpackStart(how archives.Decompressor, raw []byte) []byte {
	in, err := how.OpenReader(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	defer in.Close()
	start := make([]byte, startSize)
	n, _ := io.ReadFull(in, start) // a short start is enough
	return start[:n]
}

// unknownPacked returns why a compressed source is not an archive: it contains
// something else, or it is cut off before its content can be recognised.
func (r *reading) unknownPacked(how archives.Decompressor, raw io.Reader) error {
	stream := &Counter{Reader: raw}
	in, err := how.OpenReader(stream)
	if err == nil {
		defer in.Close()
		_, err = io.CopyN(io.Discard, in, tarBlock)
	}
	if err != nil && !errors.Is(err, io.EOF) && stream.N >= tarBlock {
		return readError(err, stream.Ended, 0)
	}
	return &NotArchiveError{"no tar archive in it"}
}

// unpack opens a compressed file that has at least peeked bytes.
func (r *reading) unpack(how archives.Decompressor, raw io.Reader, peeked int) (io.ReadCloser, error) {
	if _, isXz := how.(archives.Xz); isXz && peeked >= largeXz {
		return openXz(r.ctx, raw)
	}
	return how.OpenReader(raw)
}

func (r *reading) packedFile(how archives.Decompressor, name string, raw io.Reader, peeked int) error {
	in, err := r.unpack(how, raw, peeked)
	if err != nil {
		return cannotRead(err)
	}
	defer in.Close()
	return cannotRead(r.keep(name, r.limits.Unpacked(in)))
}

// readError adds to err how far the archive could be read, and the next step.
func readError(err error, ended bool, entries int) error {
	switch {
	case err == nil || isFinal(err):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), ended && strings.Contains(err.Error(), "truncated"): // the wording of xz
		return fmt.Errorf("is cut off after %d of its files: copy it again and compare its sha256", entries)
	default:
		return fmt.Errorf("cannot be read beyond its file %d: %w: copy it again and compare its sha256", entries, err)
	}
}

func cannotRead(err error) error {
	if err == nil || isFinal(err) {
		return err
	}
	return fmt.Errorf("cannot be read: %w: copy it again and compare its sha256", err)
}

// isFinal reports whether an error ends the reading of the whole source, because it
// does not concern the current file alone.
func isFinal(err error) bool {
	return CannotWrite(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLimit)
}
