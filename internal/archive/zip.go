package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// isZip reports whether a file is a zip archive that is read: the source itself, or one whose name says
// that it is one. Documents and programs have the same first bytes.
func isZip(name string, start []byte, depth int) bool {
	return (bytes.HasPrefix(start, []byte("PK\x03\x04")) || bytes.HasPrefix(start, []byte("PK\x05\x06"))) && (depth == 0 || path.Ext(name) == ".zip")
}

// zip takes the entries of a zip archive. Its directory is at its end, so it is spooled first.
func (r *reading) zip(name string, in io.Reader, below string, depth int) error {
	spooled, err := r.spoolFile(name, in)
	if err != nil {
		return err
	}
	defer os.Remove(spooled.Spooled)
	file, err := os.Open(spooled.Spooled)
	if err != nil {
		return errSpool{err}
	}
	defer file.Close()
	entries, err := zipEntries(file, spooled.Size)
	if err != nil {
		return cannotRead(err)
	}
	if err := tooMany(int(min(entries, 1<<31)), r.limits.limits.Entries, "entries"); err != nil {
		return err
	}
	archive, err := zip.NewReader(file, spooled.Size)
	if err != nil {
		return cannotRead(err)
	}
	for _, entry := range archive.File {
		if err := r.limits.Entry(); err != nil {
			return err
		}
		if err := r.zipEntry(entry, below, depth); err != nil {
			return err
		}
	}
	return nil
}

// zipEntry takes one entry. A name that leads out of the archive is skipped, and a damaged or encrypted
// entry concerns only itself.
func (r *reading) zipEntry(entry *zip.File, below string, depth int) error {
	name, ok := local(entry.Name)
	name = path.Join(below, name)
	if !ok || !entry.Mode().IsRegular() && entry.Mode().Type() != fs.ModeSymlink {
		return nil
	}
	const encrypted = 1 // bit 0 of the flags (APPNOTE 4.4.4)
	if entry.Flags&encrypted != 0 {
		if r.want(name, nil) != Leave {
			r.lose(name, fmt.Errorf("is %w: unpack the zip archive with its password first", ErrEncrypted))
		}
		return nil
	}
	in, err := entry.Open()
	if err != nil {
		r.lose(name, err)
		return nil
	}
	defer in.Close()
	if entry.Mode().Type() == fs.ModeSymlink {
		target, err := io.ReadAll(io.LimitReader(in, maxName))
		if err != nil {
			r.lose(name, err)
			return nil
		}
		return r.keepLink(name, string(target))
	}
	outer := r.size
	r.size = int64(min(entry.UncompressedSize64, 1<<62))
	defer func() { r.size = outer }()
	err = r.inner(name, r.limits.Unpacked(in), depth+1)
	if err == nil || r.ctx.Err() != nil || isFinal(err) {
		return err
	}
	r.lose(name, cannotRead(err))
	return nil
}

// zipEntries returns the number of entries that the end of a zip archive states (APPNOTE 4.3.14 and
// 4.3.16). Package zip makes a value for each before it returns.
func zipEntries(file io.ReaderAt, size int64) (uint64, error) {
	const endSize, longestComment, locatorSize, largeSize = 22, 1<<16 - 1, 20, 56
	tail := make([]byte, min(size, endSize+longestComment+locatorSize))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	end := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if end < 0 || len(tail)-end < endSize {
		return 0, io.ErrUnexpectedEOF
	}
	entries := uint64(binary.LittleEndian.Uint16(tail[end+10:]))
	if end < locatorSize || !bytes.HasPrefix(tail[end-locatorSize:], []byte("PK\x06\x07")) {
		return entries, nil
	}
	large := make([]byte, largeSize)
	at := binary.LittleEndian.Uint64(tail[end-locatorSize+8:])
	if _, err := file.ReadAt(large, int64(min(at, 1<<62))); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	return max(entries, binary.LittleEndian.Uint64(large[32:])), nil
}
