package archive

import (
	"archive/tar"
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

// tarBlock is the unit of a tar archive; a block of zeros ends it.
const tarBlock = 512

func isTar(start []byte) bool {
	return len(start) >= tarBlock && bytes.HasPrefix(start[257:], []byte("ustar"))
}

func (r *reading) packedArchive(how archives.Decompressor, raw io.Reader, peeked int, below string, depth int) error {
	counted := &Counter{Reader: raw}
	in, err := r.unpack(how, counted, peeked)
	if err != nil {
		return cannotRead(err)
	}
	entries, err := r.tar(&Counter{Reader: r.limits.Unpacked(in)}, below, depth)
	in.Close() // no other goroutine reads raw from here on
	return readError(err, counted.Ended, entries)
}

func (r *reading) archive(in io.Reader, below string, depth int) error {
	counted := &Counter{Reader: in}
	entries, err := r.tar(counted, below, depth)
	return readError(err, counted.Ended, entries)
}

// tar takes the entries of an archive, or of several in a row. It reads to the end of
// the stream, because the checksums that reveal damage are there.
func (r *reading) tar(stream *Counter, below string, depth int) (entries int, err error) {
	for next := io.Reader(stream); next != nil && err == nil; {
		var last int64 // where the last entry ended
		err = archives.Tar{}.Extract(r.ctx, next, func(_ context.Context, info archives.FileInfo) error {
			entries++
			if err := r.limits.Entry(); err != nil {
				return err
			}
			err := r.entry(info, below, depth)
			last = stream.N
			return err
		})
		if err == nil && stream.N-last < tarBlock {
			return entries, io.ErrUnexpectedEOF // package tar treats a cut between two entries as the end
		}
		if err == nil {
			next, err = nextArchive(stream)
		}
	}
	return entries, err
}

// maxPadding bounds what may follow an archive, in bytes. tar pads to 10 KiB
// unless its options say otherwise.
const maxPadding = 64 << 20

// nextArchive reads what follows an archive: another one, since reports are
// sometimes concatenated, or the end of the stream, where it returns nil.
func nextArchive(stream io.Reader) (io.Reader, error) {
	block := make([]byte, tarBlock)
	for n := 0; ; n += tarBlock {
		if n > maxPadding {
			return nil, fmt.Errorf("%w: more than %d MiB of trailing data after the archive", ErrLimit, maxPadding>>20)
		}
		_, err := io.ReadFull(stream, block)
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			// The end of the padding, or of a truncated stream: the next read shows which.
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

// entry takes one entry of an archive. A name that leads out of it is skipped.
func (r *reading) entry(info archives.FileInfo, below string, depth int) error {
	header, ok := info.Header.(*tar.Header)
	if !ok {
		return fmt.Errorf("%q: no tar header", info.NameInArchive)
	}
	in, err := info.Open()
	if err != nil {
		return err
	}
	name, ok := local(header.Name)
	name = path.Join(below, name)
	switch {
	case ok && header.Typeflag == tar.TypeReg:
		outer := r.size
		r.size = header.Size
		err = r.inner(name, in, depth+1)
		r.size = outer
	case ok && header.Typeflag == tar.TypeSymlink:
		err = r.keepLink(name, header.Linkname)
	case ok && header.Typeflag == tar.TypeLink:
		target, ok := local(header.Linkname)
		target = path.Join(below, target)
		if link, relErr := filepath.Rel(path.Dir(name), target); ok && relErr == nil && target != name {
			err = r.keepLink(name, link)
		}
	}
	if err == nil && !IsSparse(header) { // package tar skips the holes of a sparse file, which may have exabytes
		err = r.discard(in) // the rest of the entry
	}
	return err
}

// IsSparse reports whether an entry is sparse, in the old GNU or the PAX format.
func IsSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}
