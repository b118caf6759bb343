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

// The installed xz takes half the time of the library, and uses all cores for a file of
// several blocks. Its output has the same limits as the library's.

// largeXz is the compressed size, in bytes, above which starting a process saves
// time. Smaller files are unpacked by the library.
const largeXz = 64 << 10

// emptyXz is the output of xz for an empty input.
const emptyXz = "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x00\x00\x00\x00\x1c\xdfD!\x1f\xb6\xf3}\x01\x00\x00\x00\x00\x04YZ"

// findXz returns the path of an xz that accepts the arguments of xzCommand; busybox's does not.
func findXz(ctx context.Context) (path string, ok bool) {
	path, err := exec.LookPath("xz")
	if err != nil {
		return "", false
	}
	try := xzCommand(ctx, path)
	try.Stdin = strings.NewReader(emptyXz)
	return path, try.Run() == nil
}

// xzCommand returns a command that runs xz with messages in English and without the
// caller's environment, because XZ_OPT could change the output. The memory limit allows
// the dictionary of xz -9, 64 MiB, which is also the library's limit; xz uses fewer
// threads before it gives up.
func xzCommand(ctx context.Context, path string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, "--decompress", "--stdout", "--format=xz", "--threads=0", "--memlimit-decompress=80MiB")
	cmd.Args[0] = "xz" // the prefix of its messages
	cmd.Env = []string{"LC_ALL=C"}
	return cmd
}

// openXz unpacks a stream with the installed xz, or with the library if xz is missing. Another
// goroutine reads the stream until the returned reader is closed.
func openXz(ctx context.Context, r io.Reader) (io.ReadCloser, error) {
	path, ok := findXz(ctx)
	if !ok {
		return archives.Xz{}.OpenReader(r)
	}
	ending, cancel := context.WithCancel(ctx)
	process := &xzProcess{ctx: ctx, cancel: cancel, cmd: xzCommand(ending, path), in: xzInput{Reader: r}}
	process.cmd.Stdin, process.cmd.Stderr = &process.in, &process.stderr
	out, err := process.cmd.StdoutPipe()
	if err == nil {
		widen(out)
		err = process.cmd.Start()
	}
	if err != nil {
		cancel()
		return archives.Xz{}.OpenReader(r) // nothing was read from it yet
	}
	process.out = out
	return process, nil
}

// xzProcess is a running xz. Read returns its output.
type xzProcess struct {
	ctx    context.Context // the caller's
	cmd    *exec.Cmd
	cancel context.CancelFunc
	stderr bytes.Buffer
	in     xzInput
	out    io.ReadCloser
	once   sync.Once
	end    error // io.EOF after success
}

func (x *xzProcess) Read(data []byte) (int, error) {
	n, err := x.out.Read(data)
	if err == nil {
		return n, nil
	}
	x.wait()
	return n, x.end
}

// Close ends xz, and returns when its input is no longer read.
func (x *xzProcess) Close() error {
	x.cancel()
	x.out.Close()
	x.wait()
	return nil
}

// wait sets the error with which unpacking ended. An error of the input takes
// precedence, because xz only saw the input end.
func (x *xzProcess) wait() {
	x.once.Do(func() {
		err := x.cmd.Wait() // the input is no longer read
		x.cancel()
		switch {
		case x.ctx.Err() != nil:
			x.end = x.ctx.Err()
		case x.in.err != nil:
			x.end = x.in.err
		case err != nil:
			x.end = x.reason(err)
		default:
			x.end = io.EOF
		}
	})
}

// reason returns why xz failed, as the library's error where it has one.
func (x *xzProcess) reason(err error) error {
	message, _, _ := strings.Cut(strings.TrimSpace(x.stderr.String()), "\n")
	message = strings.TrimPrefix(strings.TrimPrefix(message, "xz: "), "(stdin): ")
	switch {
	case strings.Contains(message, "Unexpected end of input"):
		return io.ErrUnexpectedEOF
	case message != "":
		return fmt.Errorf("xz: %s", message)
	}
	return fmt.Errorf("xz: %w", err)
}

// xzInput records why its reader cannot be read.
type xzInput struct {
	io.Reader
	err error
}

func (i *xzInput) Read(data []byte) (int, error) {
	n, err := i.Reader.Read(data)
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}
