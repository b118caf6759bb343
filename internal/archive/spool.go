package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"ovs-offline/internal/interrupt"
)

// File is a file in a spool folder. It is never changed once it is written.
type File struct {
	Spooled string // its path
	Size    int64
	SHA256  string // of the content, in hexadecimal
}

// Spool copies in to a new file in the folder dir. An error of in is returned as
// it is; an error of the new file is an errSpool.
func Spool(ctx context.Context, dir string, in io.Reader) (File, error) {
	out, err := os.CreateTemp(dir, "spooled-*")
	if err != nil {
		return File{}, errSpool{err}
	}
	sum := sha256.New()
	n, err := io.Copy(spoolWriter{io.MultiWriter(out, sum)}, interrupt.Reader(ctx, in))
	beginWriteback(out)
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = errSpool{closeErr}
	}
	if err != nil {
		os.Remove(out.Name())
		return File{}, err
	}
	return File{Spooled: out.Name(), Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// spoolWriter marks write errors, to distinguish a full disk from an unreadable source.
type spoolWriter struct{ to io.Writer }

func (w spoolWriter) Write(data []byte) (int, error) {
	n, err := w.to.Write(data)
	if err != nil {
		err = errSpool{err}
	}
	return n, err
}

type errSpool struct{ error }

func (e errSpool) Unwrap() error { return e.error }

// CannotWrite reports whether an error is about a file that could not be written, for
// example on a full disk. The source is not to blame then, and no other part of it can be
// kept either.
func CannotWrite(err error) bool {
	_, isSpool := errors.AsType[errSpool](err)
	full := func(errno syscall.Errno) bool { return errors.Is(err, errno) }
	return isSpool || slices.ContainsFunc([]syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}, full)
}
