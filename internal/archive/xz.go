package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"github.com/mholt/archives"
)

// The installed xz unpacks in a process of its own, on all cores where the file
// has several blocks, and takes half the time of the library. What comes out is
// read, bounded and judged as if the library had unpacked it.

// largeXz is the size of a compressed file, in bytes, from where on a process
// is worth its start; smaller ones are left to the library.
const largeXz = 64 << 10

// xzArguments bound its memory: a dictionary of 64 MiB, the library's bound and
// that of xz -9, needs a little more. It takes fewer threads before it gives up.
func xzArguments() []string {
	return []string{"--decompress", "--stdout", "--format=xz", "--threads=0", "--memlimit-decompress=80MiB"}
}

// emptyXz is what xz makes of nothing.
const emptyXz = "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x00\x00\x00\x00\x1c\xdfD!\x1f\xb6\xf3}\x01\x00\x00\x00\x00\x04YZ"

// findXz returns the path of an xz that takes our arguments: busybox's does not.
func findXz(ctx context.Context) (path string, ok bool) {
	path, err := exec.LookPath("xz")
	if err != nil {
		return "", false
	}
	try := xzCommand(ctx, path)
	try.Stdin = strings.NewReader(emptyXz)
	return path, try.Run() == nil
}

// xzCommand is xz with nothing of the caller's environment: XZ_OPT could have
// it keep or print anything, and its messages are read.
func xzCommand(ctx context.Context, path string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, xzArguments()...)
	cmd.Args[0] = "xz" // so it begins its messages
	cmd.Env = []string{"LC_ALL=C"}
	return cmd
}

// openXz unpacks r by the installed xz, or by the library where there is none.
// r is read by another goroutine until what is returned is closed.
func openXz(ctx context.Context, r io.Reader) (io.ReadCloser, error) {
	path, ok := findXz(ctx)
	if !ok {
		return archives.Xz{}.OpenReader(r)
	}
	ending, cancel := context.WithCancel(ctx)
	x := &xzProcess{ctx: ctx, cancel: cancel, cmd: xzCommand(ending, path)}
	x.cmd.Stderr = &x.said
	if err := x.start(r); err != nil {
		cancel()
		return archives.Xz{}.OpenReader(r) // nothing of it was read yet
	}
	return x, nil
}

// xzProcess is a running xz; reading it reads what it unpacked.
type xzProcess struct {
	ctx    context.Context // the caller's
	cmd    *exec.Cmd
	cancel context.CancelFunc
	said   bytes.Buffer
	out    io.ReadCloser
	fed    chan error // how reading its input ended
	once   sync.Once
	end    error // how it ended; io.EOF where all is well
}

func (x *xzProcess) start(r io.Reader) error {
	in, err := x.cmd.StdinPipe()
	if err != nil {
		return err
	}
	if x.out, err = x.cmd.StdoutPipe(); err != nil {
		return err
	}
	widen(x.out)
	if err := x.cmd.Start(); err != nil {
		return err
	}
	x.fed = make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(pipeWriter{in}, onlyReader{r}, make([]byte, 128<<10))
		in.Close() // only now does xz see the end
		x.fed <- err
	}()
	return nil
}

func (x *xzProcess) Read(p []byte) (int, error) {
	n, err := x.out.Read(p)
	if err == nil {
		return n, nil
	}
	x.wait()
	return n, x.end
}

// Close ends xz, and returns once nobody reads its input any more.
func (x *xzProcess) Close() error {
	x.cancel()
	x.out.Close()
	x.wait()
	return nil
}

// wait finds out how unpacking ended. What is wrong with the input comes first:
// xz only saw it end.
func (x *xzProcess) wait() {
	x.once.Do(func() {
		fed := <-x.fed
		err := x.cmd.Wait()
		x.cancel()
		var refused errXzInput
		switch {
		case x.ctx.Err() != nil:
			x.end = x.ctx.Err()
		case fed != nil && !errors.As(fed, &refused):
			x.end = fed
		case err != nil:
			x.end = x.reason(err)
		default:
			x.end = io.EOF
		}
	})
}

// reason says in the library's way why xz failed.
func (x *xzProcess) reason(err error) error {
	said, _, _ := strings.Cut(strings.TrimSpace(x.said.String()), "\n")
	said = strings.TrimPrefix(strings.TrimPrefix(said, "xz: "), "(stdin): ")
	switch {
	case strings.Contains(said, "Unexpected end of input"):
		return io.ErrUnexpectedEOF
	case said != "":
		return fmt.Errorf("xz: %s", said)
	}
	return fmt.Errorf("xz: %w", err)
}

// pipeWriter tells an xz that takes no more from an input that can't be read.
type pipeWriter struct{ to io.Writer }

type errXzInput struct{ error }

func (w pipeWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		err = errXzInput{err}
	}
	return n, err
}

// onlyReader hides a WriteTo, which would write by the reader's own measure.
type onlyReader struct{ io.Reader }
