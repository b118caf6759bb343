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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	utilexec "k8s.io/client-go/util/exec"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/kube"
)

// Target is a container that commands are run in.
type Target struct {
	Namespace, Pod, Container string
	image                     string // its reference
	instance                  string // changes when the container is restarted
}

// String returns the target as manifests and messages name it.
func (t Target) String() string { return t.Namespace + "/" + t.Pod + "/" + t.Container }

// Executor runs a command in a container. It returns when the command's streams
// have ended, or ctx; a nil error does not mean that they are complete.
type Executor interface {
	Exec(ctx context.Context, target Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error
}

const (
	// defaultStall is how long a stream may be silent, and a request unanswered.
	defaultStall = kube.DefaultTimeout
	// longer is the timeout of commands that may stream for long, in stall times.
	longer = 10
)

// transfer runs shell texts in containers until their output is complete.
type transfer struct {
	exec     Executor
	spool    string        // a folder for the output
	stall    time.Duration // how long a stream may be silent
	patience *patience
	received func(n int) // called with the number of bytes received; may be nil
	maxBytes int64       // limit of the bytes received; 0 for archive.Default's
	total    atomic.Int64
	former   former
}

// former holds the nonces of the failed tries in each container, whose processes may
// be left there.
type former struct {
	mu     sync.Mutex
	nonces map[Target][]string
}

func (f *former) noncesOf(target Target) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.nonces[target], " ")
}

// ended records the end of a try, which has killed what former ones left.
func (f *former) ended(target Target, nonce string, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if whole {
		delete(f.nonces, target)
		return
	}
	if f.nonces == nil {
		f.nonces = map[Target][]string{}
	}
	f.nonces[target] = append(f.nonces[target], nonce)
}

// locator returns the container to run commands in. With again, it looks for it again,
// because a try has failed.
type locator func(ctx context.Context, again bool) (Target, error)

// run runs a text and returns all of its frames. An incomplete run is repeated.
func (t *transfer) run(ctx context.Context, locate locator, text string, args ...string) (frames []frame, err error) {
	err = t.patience.persist(ctx, func(again bool) error {
		target, err := locate(ctx, again)
		if err == nil {
			frames, err = t.runOnce(ctx, target, text, args)
		}
		if err == nil {
			err = t.unreached(target, frames)
		}
		if err != nil {
			t.drop(frames)
			frames = nil
		}
		return err
	})
	return frames, err
}

// lastFrame is the name of the last frame of each argument, in texts that take several.
const lastFrame = "done"

// runForEach runs a text that does the same for each of its arguments. Its frames are named
// "N NAME", with the number of the argument from 1. The complete part of an incomplete
// stream is kept, and the text run again for the rest. Returned frames have no number.
func (t *transfer) runForEach(ctx context.Context, locate locator, text string, args []string) ([][]frame, error) {
	var all [][]frame
	err := t.patience.persist(ctx, func(again bool) error {
		if len(all) == len(args) {
			return nil
		}
		target, err := locate(ctx, again)
		if err != nil {
			return err
		}
		frames, err := t.runOnce(ctx, target, text, args[len(all):])
		if unreached := t.unreached(target, frames); unreached != nil {
			t.drop(frames)
			return unreached
		}
		if complete := groupByArgument(frames); len(complete) > 0 {
			all = append(all, complete...)
			t.patience.succeeded()
		}
		if len(all) >= len(args) {
			return nil
		}
		return cmp.Or(err, fmt.Errorf("%s: %w: %d of %d parts", target, errShort, len(all), len(args)))
	})
	return all, err
}

// groupByArgument splits frames by argument, without the last argument if it is incomplete.
func groupByArgument(frames []frame) [][]frame {
	var groups [][]frame
	var current []frame
	for _, frame := range frames {
		_, frame.name, _ = strings.Cut(frame.name, " ")
		if frame.name == lastFrame {
			groups, current = append(groups, current), nil
			continue
		}
		current = append(current, frame)
	}
	return groups
}

// unreached returns an error if a command could not connect to its daemon while the
// container may be restarting.
func (t *transfer) unreached(target Target, frames []frame) error {
	i := slices.IndexFunc(frames, func(frame frame) bool { return frame.code != 0 && frame.noConnection() && !frame.isOptional() })
	if i < 0 || !t.patience.mayRestart() {
		return nil
	}
	return fmt.Errorf("%s: %s: %s", target, frames[i].name, frames[i].failure())
}

// drop removes the output of frames.
func (t *transfer) drop(frames []frame) {
	for _, frame := range frames {
		os.Remove(frame.Spooled)
	}
}

// runOnce runs a text once. With an error it returns the complete frames.
func (t *transfer) runOnce(ctx context.Context, target Target, text string, args []string) ([]frame, error) {
	dir, err := os.MkdirTemp(t.spool, "exec-*")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	defer os.RemoveAll(dir)
	framing := framing{nonce: rand.Text()}
	stdout, stderr := filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")
	began := time.Now().UTC()
	err = t.receive(ctx, target, t.argv(framing.nonce, t.former.noncesOf(target), text, args), stdout, stderr)
	if errors.Is(err, errLocal) {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	frames, short := t.check(framing, stdout, stderr)
	for i := range frames {
		frames[i].ran = began
	}
	t.former.ended(target, framing.nonce, short == nil)
	switch {
	case short == nil:
		return frames, nil // proven complete, however the connection ended
	case hasNoShell(err):
		return nil, fmt.Errorf("%s: %w: sh (%w)", target, errNoTool, err)
	case err == nil || errors.Is(short, errNoTool):
		return frames, fmt.Errorf("%s: %w", target, short)
	}
	return frames, fmt.Errorf("%s: %w", target, err)
}

// hasNoShell reports whether sh could not be run in the container. Kubelets pass on the
// words of runc and crun, and no code of their own.
func hasNoShell(err error) bool {
	if err == nil {
		return false
	}
	var exited utilexec.CodeExitError
	if errors.As(err, &exited) {
		return exited.Code == 126 || exited.Code == 127
	}
	text := err.Error()
	return strings.Contains(text, "executable file") && strings.Contains(text, "not found")
}

// argv returns sh -c TEXT sh NONCE SHORT LONG FORMER ARG...; SHORT and LONG are in seconds.
func (t *transfer) argv(nonce, former, text string, args []string) []string {
	short := max(1, int(t.stall.Seconds()*0.8)) // a command gives up before its stream counts as stalled
	return append([]string{"sh", "-c", text, "sh", nonce, strconv.Itoa(short), strconv.Itoa(short * longer), former}, args...)
}

// check splits the spooled streams into frames.
func (t *transfer) check(framing framing, stdout, stderr string) ([]frame, error) {
	out, err := os.Open(stdout)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	defer out.Close()
	frames, short := framing.readFrames(out, t.spool)
	errs, err := os.Open(stderr)
	if err != nil {
		return frames, fmt.Errorf("%w: %w", errLocal, err)
	}
	defer errs.Close()
	whole, shortErrs := framing.readErrors(errs, frames)
	t.drop(frames[whole:])
	return frames[:whole], cmp.Or(short, shortErrs)
}

// receive drains both streams of a command into files.
func (t *transfer) receive(ctx context.Context, target Target, argv []string, stdout, stderr string) error {
	ctx, alive, end := kube.UntilSilent(ctx, t.stall)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	received := func(n int) {
		alive()
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
	err = t.exec.Exec(ctx, target, argv, pulse{ctx}, out, errs)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, kube.ErrSilent) {
		err = fmt.Errorf("%w: the node or its pod may be overloaded; --request-timeout allows more", err)
	}
	return errors.Join(err, out.Close(), errs.Close())
}
