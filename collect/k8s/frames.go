package k8s

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// frame is what one command said.
type frame struct {
	name   string
	code   int    // its exit code
	file   string // its output, in the spool
	size   int64
	stderr string // the start of it
}

// errShort is wrapped by errors that say that a stream did not come whole.
var errShort = errors.New("the stream did not come whole")

// errFar is wrapped by errors of the tools that every image is to have.
var errFar = errors.New("the container lacks what is needed")

// framing reads the lines that carry the nonce.
type framing struct{ nonce string }

// mark tells whether a line is one of ours, and returns what follows the nonce.
func (f framing) mark(line []byte) (rest string, ok bool) {
	text, ok := strings.CutPrefix(string(line[:min(len(line), len(f.nonce)+200)]), f.nonce+" ")
	if !ok || !bytes.HasSuffix(line, []byte("\n")) {
		return "", false
	}
	return strings.TrimSuffix(text, "\n"), true
}

// readFrames takes a stream apart; each frame's output goes to a file in dir.
// It returns the frames that came whole. The error wraps errShort where the
// stream ends early or differs from what was sent.
func (f framing) readFrames(stream io.Reader, dir string) ([]frame, error) {
	in := bufio.NewReaderSize(stream, 64<<10)
	var frames []frame
	for {
		line, err := in.ReadSlice('\n')
		rest, ok := f.mark(line)
		switch {
		case ok && rest == ".":
			return frames, nil
		case ok && strings.HasPrefix(rest, "{"):
			fr, err := f.readFrame(in, rest[1:], dir)
			if err != nil {
				return frames, err
			}
			frames = append(frames, fr)
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
			return frames, err
		default:
			return frames, fmt.Errorf("%w: it ends after %d commands", errShort, len(frames))
		}
	}
}

// readFrame copies the output of one command. The line break before the closing
// line is not the command's.
func (f framing) readFrame(in *bufio.Reader, name, dir string) (fr frame, err error) {
	out, err := os.CreateTemp(dir, "frame-*")
	if err != nil {
		return fr, err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	var sum cksum
	buffered := bufio.NewWriterSize(out, 64<<10)
	both := io.MultiWriter(buffered, &sum)
	closing, err := f.copyOutput(in, both)
	if err != nil {
		return fr, fmt.Errorf("%s: %w", name, err)
	}
	if err := buffered.Flush(); err != nil {
		return fr, err
	}
	fr = frame{name: name, file: out.Name(), size: sum.size}
	fr.code, err = verify(closing, sum)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return fr, err
}

// copyOutput copies up to the closing line and returns that.
func (f framing) copyOutput(in *bufio.Reader, out io.Writer) (closing string, err error) {
	atStart, heldBreak, size := true, false, 0
	for {
		line, err := in.ReadSlice('\n')
		if rest, ok := f.mark(line); ok && atStart && strings.HasPrefix(rest, "}") {
			return rest[1:], nil
		}
		if heldBreak && len(line) > 0 {
			if _, err := out.Write([]byte{'\n'}); err != nil {
				return "", err
			}
		}
		heldBreak = bytes.HasSuffix(line, []byte("\n"))
		atStart = heldBreak
		size += len(line)
		if _, err := out.Write(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return "", err
		}
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%w: it ends after %d bytes of this command", errShort, size)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
}

// verify compares what came with what the far side counted.
func verify(closing string, sum cksum) (code int, err error) {
	words := strings.Fields(closing)
	if len(words) != 4 {
		return 0, fmt.Errorf("%w: tee and cksum count what is sent, and said only %q", errFar, closing)
	}
	if words[1] != "t0" {
		return 0, fmt.Errorf("%w: tee failed with exit code %s", errFar, strings.TrimPrefix(words[1], "t"))
	}
	if crc := strconv.FormatUint(uint64(sum.sum()), 10); words[2] != crc || words[3] != strconv.FormatInt(sum.size, 10) {
		return 0, fmt.Errorf("%w: %d bytes with checksum %s came, %s with %s were sent", errShort, sum.size, crc, words[3], words[2])
	}
	return strconv.Atoi(strings.TrimPrefix(words[0], "c"))
}

// mostErrors bounds what is kept of one command's stderr, in bytes.
const mostErrors = 4096

// readErrors gives each frame what its command wrote to stderr, and returns how
// many of them it had whole. Both streams have the same frames in the same order.
func (f framing) readErrors(stream io.Reader, frames []frame) (whole int, err error) {
	in := bufio.NewReaderSize(stream, 64<<10)
	at, inside := -1, false
	for {
		line, err := in.ReadSlice('\n')
		rest, ok := f.mark(line)
		switch {
		case ok && rest == ".":
			if whole != len(frames) {
				return min(whole, len(frames)), fmt.Errorf("%w: errors of %d commands came, output of %d", errShort, whole, len(frames))
			}
			return whole, nil
		case ok && strings.HasPrefix(rest, "{"):
			at, inside = at+1, true
			if at < len(frames) && frames[at].name != rest[1:] {
				return whole, fmt.Errorf("%w: the errors are of %q, the output of %q", errShort, rest[1:], frames[at].name)
			}
		case ok:
			whole, inside = at+1, false
		case inside && at < len(frames) && len(frames[at].stderr) < mostErrors:
			frames[at].stderr += string(line)
		}
		if errors.Is(err, io.EOF) {
			return min(whole, len(frames)), fmt.Errorf("%w: the errors end after %d of %d commands", errShort, whole, len(frames))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}
