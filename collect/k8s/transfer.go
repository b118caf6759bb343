package k8s

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ovs-offline/internal/archive"
)

// Target is a container that commands are run in.
type Target struct{ Namespace, Pod, Container string }

// String returns the target as manifests and messages name it.
func (t Target) String() string { return t.Namespace + "/" + t.Pod + "/" + t.Container }

// Executor runs a command in a container. It returns when the command's streams
// have ended; a nil error does not mean that they are complete.
type Executor interface {
	Exec(ctx context.Context, t Target, argv []string, stdout, stderr io.Writer) error
}

const (
	// tries is how often a command is run until its streams are complete.
	tries = 3
	// defaultStall is how long a stream may be silent.
	defaultStall = 60 * time.Second
	// patience is the timeout of commands that may stream for long, in stall times.
	patience = 10
)

// errStalled is wrapped when a stream was silent for too long.
var errStalled = errors.New("no data was received for too long")

// transfer runs shell texts in containers until their output is complete.
type transfer struct {
	exec     Executor
	spool    string        // a folder for the output
	stall    time.Duration // how long a stream may be silent
	received func(n int)   // called with the number of bytes received; may be nil
	maxBytes int64         // limit of the bytes received; 0 for archive.Default's
	total    atomic.Int64
}

// run runs a text and returns all of its frames. An incomplete run is repeated.
func (t *transfer) run(ctx context.Context, target Target, text string, args ...string) ([]frame, error) {
	var err error
	for range tries {
		var frames []frame
		if frames, err = t.once(ctx, target, text, args); err == nil {
			return frames, nil
		}
		t.drop(frames)
		if isFinal(ctx, err) {
			break
		}
	}
	return nil, err
}

// lastFrame is the name of the last frame of each argument, in texts that take several.
const lastFrame = "done"

// each runs a text that does the same for each of its arguments. Its frames are named
// "N NAME", with the number of the argument from 1. The complete part of an incomplete
// stream is kept, and the text run again for the rest. Returned frames have no number.
func (t *transfer) each(ctx context.Context, target Target, text string, args []string) ([][]frame, error) {
	var all [][]frame
	for failures := 0; len(all) < len(args); {
		frames, err := t.once(ctx, target, text, args[len(all):])
		complete := group(frames)
		all = append(all, complete...)
		if len(all) >= len(args) {
			break
		}
		if err == nil {
			err = fmt.Errorf("%s: %w: %d of %d parts", target, errShort, len(all), len(args))
		}
		if failures++; len(complete) > 0 {
			failures = 0
		}
		if failures == tries || isFinal(ctx, err) {
			return nil, err
		}
	}
	return all, nil
}

// group splits frames by argument, without the last argument if it is incomplete.
func group(frames []frame) [][]frame {
	var groups [][]frame
	var current []frame
	for _, f := range frames {
		_, f.name, _ = strings.Cut(f.name, " ")
		if f.name == lastFrame {
			groups, current = append(groups, current), nil
			continue
		}
		current = append(current, f)
	}
	return groups
}

// isFinal reports whether another try would fail in the same way.
func isFinal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errNoTool) || errors.Is(err, errLocal) || errors.Is(err, archive.ErrLimit) || isRefused(err)
}

// drop removes the output of frames.
func (t *transfer) drop(frames []frame) {
	for _, f := range frames {
		os.Remove(f.Spooled)
	}
}

// once runs a text once. With an error it returns the complete frames.
func (t *transfer) once(ctx context.Context, target Target, text string, args []string) ([]frame, error) {
	dir, err := os.MkdirTemp(t.spool, "exec-*")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	defer os.RemoveAll(dir)
	f := framing{nonce: rand.Text()}
	stdout, stderr := filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")
	if err := t.receive(ctx, target, t.argv(f.nonce, text, args), stdout, stderr); err != nil && errors.Is(err, errLocal) {
		return nil, fmt.Errorf("%s: %w", target, err)
	} else if frames, badly := t.check(f, stdout, stderr); badly == nil {
		return frames, nil // proven complete, however the connection ended
	} else if err != nil {
		return frames, fmt.Errorf("%s: %w (%w)", target, err, badly)
	} else {
		return frames, fmt.Errorf("%s: %w", target, badly)
	}
}

// argv returns sh -c TEXT sh NONCE SHORT LONG ARG...; SHORT and LONG are in seconds.
func (t *transfer) argv(nonce, text string, args []string) []string {
	short := max(1, int(t.stall.Seconds()*0.8)) // a command gives up before its stream counts as stalled
	return append([]string{"sh", "-c", text, "sh", nonce, strconv.Itoa(short), strconv.Itoa(short * patience)}, args...)
}

// check splits the spooled streams into frames.
func (t *transfer) check(f framing, stdout, stderr string) ([]frame, error) {
	out, err := os.Open(stdout)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	defer out.Close()
	frames, short := f.readFrames(out, t.spool)
	errs, err := os.Open(stderr)
	if err != nil {
		return frames, fmt.Errorf("%w: %w", errLocal, err)
	}
	defer errs.Close()
	whole, shortErrs := f.readErrors(errs, frames)
	t.drop(frames[whole:])
	return frames[:whole], errors.Join(short, shortErrs)
}

// receive drains both streams of a command into files.
func (t *transfer) receive(ctx context.Context, target Target, argv []string, stdout, stderr string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(t.stall, func() {
		cancel(fmt.Errorf("%w (%s): the node or its pod may be overloaded; --request-timeout allows more", errStalled, t.stall))
	})
	defer watch.Stop()
	received := func(n int) {
		watch.Reset(t.stall)
		if limit := cmp.Or(t.maxBytes, archive.Default().Bytes); t.total.Add(int64(n)) > limit {
			cancel(fmt.Errorf("%w: over %d bytes were received; --max-size allows more", archive.ErrLimit, limit))
		}
		if t.received != nil {
			t.received(n)
		}
	}
	out, err := newSpool(stdout, received, cancel)
	if err != nil {
		return err
	}
	errs, err := newSpool(stderr, received, cancel)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	err = t.exec.Exec(ctx, target, argv, out, errs)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return errors.Join(err, out.Close(), errs.Close())
}
