package file

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"
)

// copyIntact copies a standalone file byte for byte while it checks the file's records, if
// none is damaged and nothing is between them. ok is false for another file, of which out may
// then hold a part.
func copyIntact(ctx context.Context, src string, out *os.File) (info Info, ok bool, err error) {
	from, err := openSource(ctx, src)
	if err != nil {
		return Info{}, false, err
	}
	defer from.close()
	if from.info.Form != FormStandalone || from.info.Gzip || from.scan.file == nil {
		return Info{}, false, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside errgroup.Group
	beside.Go(func() error { return copySame(ctx, from.file, src, out) })
	ok, err = from.isIntact()
	if err != nil || !ok {
		cancel() // the copy is of no use
		_ = beside.Wait()
		return Info{}, false, err
	}
	err = beside.Wait()
	cancel()
	return from.info, err == nil, err
}

// isIntact reads all records of a standalone file, and reports whether they are the whole
// file as a server wrote it. It ends at the first that is not.
func (s *source) isIntact() (bool, error) {
	s.scan.skim = true
	end := int64(0)
	for {
		r, err := s.next()
		if err == io.EOF {
			return end == s.scan.maxSize, nil
		}
		if err != nil {
			return false, err
		}
		if !r.intact || r.magic != "JSON" || r.offset != end {
			return false, nil
		}
		end = r.offset + int64(len(r.line)) + r.length
	}
}

// copySame copies the file at path, which has to be the open file.
func copySame(ctx context.Context, open *os.File, path string, out *os.File) error {
	in, err := os.Open(path) // with an offset of its own, from which the kernel can copy
	if err != nil {
		return err
	}
	defer in.Close()
	was, err := open.Stat()
	if err != nil {
		return err
	}
	if is, err := in.Stat(); err != nil || !os.SameFile(was, is) {
		return fmt.Errorf("%s was replaced while it was read: %w", path, os.ErrNotExist)
	}
	const piece = 8 << 20
	for left := was.Size(); left > 0; left -= piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, min(piece, left)); err != nil {
			return fmt.Errorf("copying %s: %w", path, err)
		}
	}
	return nil
}
