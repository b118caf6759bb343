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

// String names a target as it stands in manifests and messages.
func (t Target) String() string { return t.Namespace + "/" + t.Pod + "/" + t.Container }

// Executor runs a command in a container. It returns when the command's streams
// have ended; nil says nothing about whether they came whole.
type Executor interface {
	Exec(ctx context.Context, t Target, argv []string, stdout, stderr io.Writer) error
}

const (
	// tries bounds how often a stream that fell short is asked for again.
	tries = 3
	// defaultStall is how long a stream may be silent.
	defaultStall = 60 * time.Second
	// patience is what commands that may stream for long get, in stalls.
	patience = 10
)

// errStalled is wrapped where a stream was silent for too long.
var errStalled = errors.New("nothing came for too long")

// transfer runs shell texts in containers and sees to it that their output
// comes whole.
type transfer struct {
	exec  Executor
	spool string        // a folder for what comes
	stall time.Duration // how long a stream may be silent
	bytes func(n int)   // is told of what comes; nil for nobody
	most  int64         // that may come in all, in bytes; 0 for archive.Default's
	total atomic.Int64
}

// run runs a text and returns all of its frames. What falls short is asked for
// again, a bounded number of times.
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

// lastFrame ends the frames of one argument in texts that take several.
const lastFrame = "done"

// each runs a text that does the same for each of its arguments, whose frames
// are named "N NAME", N from 1. What came whole of a stream that fell short is
// kept, and the text run again for the rest. The frames come without the number.
func (t *transfer) each(ctx context.Context, target Target, text string, args []string) ([][]frame, error) {
	var all [][]frame
	for failures := 0; len(all) < len(args); {
		frames, err := t.once(ctx, target, text, args[len(all):])
		came := group(frames)
		all = append(all, came...)
		if len(all) >= len(args) {
			break
		}
		if err == nil {
			err = fmt.Errorf("%s: %w: %d of %d parts", target, errShort, len(all), len(args))
		}
		if failures++; len(came) > 0 {
			failures = 0
		}
		if failures == tries || isFinal(ctx, err) {
			return nil, err
		}
	}
	return all, nil
}

// group parts frames by their numbers; an unfinished group is left out.
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

// isFinal tells errors after which another try would end alike.
func isFinal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errFar) || errors.Is(err, errLocal) || errors.Is(err, archive.ErrLimit) || isRefused(err)
}

// drop removes the output of frames that nobody wants.
func (t *transfer) drop(frames []frame) {
	for _, f := range frames {
		os.Remove(f.file)
	}
}

// once runs a text once. With an error come the frames that were whole.
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
		return frames, nil // proven whole, whatever the connection said at its end
	} else if err != nil {
		return frames, fmt.Errorf("%s: %w (%w)", target, err, badly)
	} else {
		return frames, fmt.Errorf("%s: %w", target, badly)
	}
}

// argv is sh -c TEXT sh NONCE SHORT LONG ARG...; SHORT and LONG are in seconds.
func (t *transfer) argv(nonce, text string, args []string) []string {
	short := max(1, int(t.stall.Seconds()*0.8)) // a command gives up before its stream counts as stalled
	return append([]string{"sh", "-c", text, "sh", nonce, strconv.Itoa(short), strconv.Itoa(short * patience)}, args...)
}

// check takes the spooled streams apart.
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
	came := func(n int) {
		watch.Reset(t.stall)
		if most := cmp.Or(t.most, archive.Default().Bytes); t.total.Add(int64(n)) > most {
			cancel(fmt.Errorf("%w: over %d bytes came; if that is right, raise it with --max-size", archive.ErrLimit, most))
		}
		if t.bytes != nil {
			t.bytes(n)
		}
	}
	out, err := newSpool(stdout, came, cancel)
	if err != nil {
		return err
	}
	errs, err := newSpool(stderr, came, cancel)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	err = t.exec.Exec(ctx, target, argv, out, errs)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return errors.Join(err, out.Close(), errs.Close())
}
