package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/mholt/archives"
)

// packed is a compression, told by the first bytes: a name says nothing for sure.
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

// tarBlock is the unit of a tar archive; a block of zeros ends it.
const tarBlock = 512

func isTar(start []byte) bool {
	return len(start) >= tarBlock && bytes.HasPrefix(start[257:], []byte("ustar"))
}

// isEncrypted knows what gpg writes (RFC 9580): a session key for a password or
// for a public key, or its text armor.
func isEncrypted(name string, start []byte) bool {
	for _, suffix := range []string{".gpg", ".pgp"} {
		if strings.HasSuffix(name, suffix) && len(start) > 0 && start[0]&0x80 != 0 {
			return true
		}
	}
	return bytes.HasPrefix(start, []byte("\x8c\x0d\x04")) || bytes.HasPrefix(start, []byte("-----BEGIN PGP MESSAGE-----"))
}

func withoutSuffix(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// peek is how much of a compressed file is looked at to see what is in it: its
// first block, of up to 900 kB for bzip2 and 128 kB for zstd.
func (p packed) peek() int {
	if p == packedBzip2 {
		return 1 << 20
	}
	return 1 << 18
}

// takePacked reads a compressed file: a tar, or one file.
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
		// Databases are read through gzip, torn ones too: kept as they are.
		return aFile, r.keep(name, raw)
	case len(start) > 0 && r.want(name, start):
		return aFile, r.packedFile(how, name, raw, len(peeked))
	case depth == 0:
		return nothing, r.unknownPacked(how, raw)
	}
	return nothing, nil
}

// unpackStart decompresses the beginning of a file as far as it goes.
func unpackStart(how packed, raw []byte) []byte {
	in, err := how.open(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	defer in.Close()
	start := make([]byte, startSize)
	n, _ := io.ReadFull(in, start) // what is there tells
	return start[:n]
}

// unknownPacked says why a compressed source is no archive: there is something
// else in it, or it is cut off before one can tell.
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

// unpack opens a compressed file of which at least peeked bytes are there.
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

func (r *reading) packedArchive(how packed, raw io.Reader, peeked int, below string, depth int) error {
	counted := &meter{Reader: raw}
	in, err := r.unpack(how, counted, peeked)
	if err != nil {
		return cannotRead(err)
	}
	entries, err := r.tar(&meter{Reader: r.limits.Unpacked(in)}, below, depth)
	in.Close() // from here on nobody else reads raw
	return readError(err, counted.ended, entries)
}

func (r *reading) archive(in io.Reader, below string, depth int) error {
	counted := &meter{Reader: in}
	entries, err := r.tar(counted, below, depth)
	return readError(err, counted.ended, entries)
}

// readError says how far an archive could be read, and what to do.
func readError(err error, ended bool, entries int) error {
	var spool errSpool
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &spool), errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), ended && strings.Contains(err.Error(), "truncated"): // xz has words of its own for it
		return fmt.Errorf("is cut off after %d of its files: copy it again and compare its sha256", entries)
	default:
		return fmt.Errorf("can't be read beyond its file %d: %w: copy it again and compare its sha256", entries, err)
	}
}

func cannotRead(err error) error {
	var spool errSpool
	if errors.Is(err, context.Canceled) || errors.As(err, &spool) || errors.Is(err, ErrLimit) {
		return err
	}
	return fmt.Errorf("can't be read: %w: copy it again and compare its sha256", err)
}

// meter counts what goes through a reader, and knows when it came to its end.
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

// tar takes the entries of an archive, or of several in a row. It reads on to
// the end of the stream: only there are the sums that tell damage.
func (r *reading) tar(stream *meter, below string, depth int) (entries int, err error) {
	for next := io.Reader(stream); next != nil && err == nil; {
		var last int64 // where the last entry ended
		err = archives.Tar{}.Extract(r.ctx, next, func(_ context.Context, e archives.FileInfo) error {
			entries++
			if err := r.limits.Entry(); err != nil {
				return err
			}
			err := r.entry(e, below, depth)
			last = stream.n
			return err
		})
		if err == nil && stream.n-last < tarBlock {
			return entries, io.ErrUnexpectedEOF // the tar package takes a cut between two entries for the end
		}
		if err == nil {
			next, err = nextArchive(stream)
		}
	}
	return entries, err
}

// padding is how much may follow an archive; tar pads to 10 KiB, or as told.
const padding = 64 << 20

// nextArchive reads on behind the end of an archive, to another one (reports
// are concatenated at times) or to the end of the stream, where it returns nil.
func nextArchive(stream io.Reader) (io.Reader, error) {
	block := make([]byte, tarBlock)
	for n := 0; ; n += tarBlock {
		if n > padding {
			return nil, fmt.Errorf("%w: over %d bytes follow the archive that are none", ErrLimit, padding)
		}
		_, err := io.ReadFull(stream, block)
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			// The end of the padding, or of a stream that was cut: reading on tells.
			if _, err := stream.Read(block[:1]); errors.Is(err, io.EOF) {
				return nil, nil
			}
			return nil, err
		case err != nil:
			return nil, err
		case isTar(block):
			return io.MultiReader(bytes.NewReader(block), stream), nil
		}
	}
}

// entry takes one entry of an archive. Names that point out of it are never taken.
func (r *reading) entry(e archives.FileInfo, below string, depth int) error {
	header, ok := e.Header.(*tar.Header)
	if !ok {
		return fmt.Errorf("%q: no tar header", e.NameInArchive)
	}
	in, err := e.Open()
	if err != nil {
		return err
	}
	name, ok := local(header.Name)
	name = join(below, name)
	switch {
	case ok && header.Typeflag == tar.TypeReg:
		outer := r.size
		r.size = header.Size
		err = r.inner(name, in, depth+1)
		r.size = outer
	case ok && header.Typeflag == tar.TypeSymlink:
		err = r.keepLink(name, header.Linkname)
	case ok && header.Typeflag == tar.TypeLink:
		if target, ok := local(header.Linkname); ok && join(below, target) != name {
			err = r.keepLink(name, relative(name, join(below, target)))
		}
	}
	if err == nil && !isSparse(header) { // a hole of exabytes is passed by who knows that it is one
		err = r.discard(in) // what the entry has left: tar must see where it ends
	}
	return err
}

// isSparse knows the forms of GNU tar: one of its own, and those of PAX.
func isSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}

// relative writes a hard link's target as a symbolic one's.
func relative(name, target string) string {
	link, err := filepath.Rel(path.Dir(name), target)
	if err != nil {
		return target
	}
	return link
}

// inner takes a file of an archive or a folder. What is wrong with it alone is
// noted; what is wrong with what it stands in, is its caller's.
func (r *reading) inner(name string, in io.Reader, depth int) error {
	if depth > maxDepth {
		r.lose(name, errors.New("is in too many archives, one in another"))
		return nil
	}
	_, err := r.take(name, name, in, depth)
	var spool errSpool
	if err == nil || r.ctx.Err() != nil || errors.As(err, &spool) || errors.Is(err, ErrLimit) {
		return err
	}
	// Reading on tells whether the file alone is bad, or the stream it comes from.
	if _, outer := io.Copy(io.Discard, in); outer != nil {
		return outer
	}
	r.lose(name, err)
	return nil
}

func (r *reading) lose(name string, err error) {
	r.tree.Lost = append(r.tree.Lost, Loss{Path: name, Reason: err.Error()})
}
