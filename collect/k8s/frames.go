package k8s

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/archive"
)

// frame is the output of one command.
type frame struct {
	archive.File // of its standard output
	name         string
	code         int       // exit code
	stderr       string    // its first bytes
	ran          time.Time // when the commands of the stream began
}

// errShort is wrapped by errors of a stream that is incomplete.
var errShort = errors.New("the stream is incomplete")

// errNoTool is wrapped when a container lacks a tool that every image should have.
var errNoTool = errors.New("the container lacks a required tool")

// framing reads the lines that begin with the nonce.
type framing struct{ nonce string }

// mark returns what follows the nonce in a line; ok is false for other lines.
func (f framing) mark(line []byte) (rest string, ok bool) {
	text, ok := strings.CutPrefix(string(line[:min(len(line), len(f.nonce)+200)]), f.nonce+" ")
	if !ok || !bytes.HasSuffix(line, []byte("\n")) {
		return "", false
	}
	return strings.TrimSuffix(text, "\n"), true
}

// readFrames splits a stream into frames, whose outputs become files in dir. It
// returns the complete frames. The error wraps errShort where the stream ends early
// or differs from what the pod sent.
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

// readFrame copies the output of one command, without the line break before the
// closing line, which is not part of it.
func (f framing) readFrame(in *bufio.Reader, name, dir string) (frame, error) {
	out, err := os.CreateTemp(dir, "frame-*")
	if err != nil {
		return frame{}, err
	}
	var sum cksum
	var code int
	digest := sha256.New()
	buffered := bufio.NewWriterSize(out, 64<<10)
	closing, err := f.copyOutput(in, io.MultiWriter(buffered, &sum, digest))
	if err = cmp.Or(err, buffered.Flush(), out.Close()); err == nil {
		code, err = verify(closing, sum)
	}
	if err != nil {
		os.Remove(out.Name())
		return frame{}, fmt.Errorf("%s: %w", name, err)
	}
	return frame{name: name, code: code, File: archive.File{Spooled: out.Name(), Size: sum.size, SHA256: hex.EncodeToString(digest.Sum(nil))}}, nil
}

// copyOutput copies a command's output and returns the closing line.
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

// verify compares the received output with the checksum and length that the pod sent.
func verify(closing string, sum cksum) (code int, err error) {
	words := strings.Fields(closing)
	if len(words) != 4 {
		return 0, fmt.Errorf("%w: tee and cksum should have printed their results, not %q", errNoTool, closing)
	}
	if words[1] != "t0" {
		return 0, fmt.Errorf("%w: tee failed with exit code %s", errNoTool, strings.TrimPrefix(words[1], "t"))
	}
	if crc := strconv.FormatUint(uint64(sum.sum()), 10); words[2] != crc || words[3] != strconv.FormatInt(sum.size, 10) {
		return 0, fmt.Errorf("%w: %d bytes with checksum %s were received, %s with %s were sent", errShort, sum.size, crc, words[3], words[2])
	}
	return strconv.Atoi(strings.TrimPrefix(words[0], "c"))
}

// maxStderr is how many bytes are kept of one command's stderr.
const maxStderr = 4096

// readErrors sets the stderr of each frame, and returns the number of frames whose
// stderr is complete. Both streams have the same frames in the same order.
func (f framing) readErrors(stream io.Reader, frames []frame) (whole int, err error) {
	in := bufio.NewReaderSize(stream, 64<<10)
	at, inside := -1, false
	for {
		line, err := in.ReadSlice('\n')
		rest, ok := f.mark(line)
		switch {
		case ok && rest == ".":
			if whole != len(frames) {
				return min(whole, len(frames)), fmt.Errorf("%w: stderr has %d commands, stdout has %d", errShort, whole, len(frames))
			}
			return whole, nil
		case ok && strings.HasPrefix(rest, "{"):
			at, inside = at+1, true
			if at < len(frames) && frames[at].name != rest[1:] {
				return whole, fmt.Errorf("%w: stderr is of %q, stdout of %q", errShort, rest[1:], frames[at].name)
			}
		case ok:
			whole, inside = at+1, false
		case inside && at < len(frames) && len(frames[at].stderr) < maxStderr:
			frames[at].stderr += string(line)
		}
		if errors.Is(err, io.EOF) {
			return min(whole, len(frames)), fmt.Errorf("%w: stderr ends after %d of %d commands", errShort, whole, len(frames))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}
