package file

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/interrupt"
)

// copyIntact copies a standalone file byte for byte while it checks the file's records, if
// none is damaged and nothing is between them. ok is false for another file, of which out may
// then hold a part.
func copyIntact(ctx context.Context, from *source, out *os.File) (info Info, ok bool, err error) {
	if from.info.Form != FormStandalone || from.info.Gzip || from.scan.file == nil {
		return Info{}, false, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside errgroup.Group
	beside.Go(func() error { return copyAll(ctx, from.file, out) })
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

// copyAll copies a file from its beginning.
func copyAll(ctx context.Context, from File, out *os.File) error {
	whole := io.NewSectionReader(from, 0, from.Size()) // with an offset of its own
	if _, err := io.Copy(out, interrupt.Reader(ctx, whole)); err != nil {
		return fmt.Errorf("copying %s: %w", from.Name(), err)
	}
	return nil
}
