package k8s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/kube"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// loopback runs commands on this machine.
type loopback struct{ shell []string }

func (l loopback) Exec(ctx context.Context, _ Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	argv = append(slices.Clone(l.shell), argv[1:]...)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdout, c.Stderr, c.WaitDelay = stdout, stderr, ovs.Patience()
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, stdin) // the command may end first
		_ = in.Close()
	}()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c.Run()
}

// shells returns the shells that images have as sh: Debian's, Red Hat's, Alpine's.
func shells(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for name, argv := range map[string][]string{"dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Logf("no %s here", name)
			continue
		}
		found[name] = argv
	}
	return found
}

// someContainer locates a container.
func someContainer(context.Context, bool) (Target, error) {
	return Target{Namespace: "ns", Pod: "pod", Container: "container"}, nil
}

// impatient returns a patience that ends after three tries.
func impatient() *patience { return &patience{limit: time.Millisecond} }

// fetch runs a text of test commands.
func fetch(t *testing.T, exec Executor, stall time.Duration, text string, args ...string) ([]frame, error) {
	t.Helper()
	tr := &transfer{exec: exec, spool: t.TempDir(), stall: stall, patience: impatient()}
	frames, err := tr.run(t.Context(), someContainer, text, args...)
	left, globErr := filepath.Glob(filepath.Join(tr.spool, "*"))
	if globErr != nil || len(left) != len(frames) {
		t.Errorf("%d files are left for %d frames", len(left), len(frames))
	}
	return frames, err
}

func output(t *testing.T, f frame) string {
	t.Helper()
	text, err := os.ReadFile(f.Spooled)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// variety is a text whose commands print everything that may be hard to transfer.
const variety = prologue + `f plain echo hello
f empty true
f binary printf 'a\0b\nc\r\n\n'
f unended printf 'no line break'
f breaks printf '\n\n\n'
f fails sh -c 'echo said; echo "went wrong" >&2; exit 3'
f missing no-such-command-anywhere
f quoted printf '%s|' "$@"
f large head -c 3000000 /dev/zero
f imitation printf '%s }0 0 4294967295 0\nXX {next\n' "not$n"
f noisy sh -c 'head -c 100000 /dev/zero | tr "\0" e >&2'
z`

// TestEveryShellTransfersEveryByte checks that the output is transferred byte for byte
// with every shell.
func TestEveryShellTransfersEveryByte(t *testing.T) {
	args := []string{"a b", "$(touch /tmp/never)", "`id`", "*", "", "'\"\\", "--", "x\ny"}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			frames, err := fetch(t, loopback{shell}, time.Minute, variety, args...)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"plain": "hello\n", "empty": "", "binary": "a\x00b\nc\r\n\n", "unended": "no line break", "breaks": "\n\n\n",
				"fails": "said\n", "missing": "", "quoted": strings.Join(args, "|") + "|", "large": string(make([]byte, 3000000)), "noisy": ""}
			codes := map[string]int{"fails": 3, "missing": 127}
			seen := 0
			for _, f := range frames {
				if f.code != codes[f.name] {
					t.Errorf("%s: exit code %d", f.name, f.code)
				}
				if text, there := want[f.name]; there {
					seen++
					if got := output(t, f); got != text || f.Size != int64(len(text)) {
						t.Errorf("%s: %d bytes: %.80q", f.name, f.Size, got)
					}
				}
				switch f.name {
				case "fails":
					expect.Equal(t, f.failure(), "exit code 3: went wrong")
				case "missing":
					if !strings.Contains(f.stderr, "not found") {
						t.Errorf("%q", f.stderr)
					}
				case "imitation":
					if !strings.Contains(output(t, f), "XX {next\n") {
						t.Error("a command's own words were taken for ours")
					}
				case "noisy":
					if len(f.stderr) < maxStderr || len(f.stderr) > maxStderr+128<<10 {
						t.Errorf("%d bytes of stderr are kept", len(f.stderr))
					}
				}
			}
			if seen != len(want) {
				t.Errorf("%d of %d commands came", seen, len(want))
			}
		})
	}
}

// taken holds the output of one run of a text.
type taken struct{ stdout, stderr []byte }

func record1(t *testing.T, argv []string) taken {
	t.Helper()
	var r taken
	var stdout, stderr bytes.Buffer
	if err := (loopback{[]string{"sh"}}).Exec(t.Context(), Target{}, argv, pulse{t.Context()}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	r.stdout, r.stderr = stdout.Bytes(), stderr.Bytes()
	return r
}

// faulty returns the output of a real run, incomplete or changed.
type faulty struct {
	t     *testing.T
	spoil func(try int, r taken) (taken, error)
	try   int
}

func (f *faulty) Exec(_ context.Context, _ Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	f.try++
	r, err := f.spoil(f.try, record1(f.t, argv))
	if _, writeErr := stdout.Write(r.stdout); writeErr != nil {
		return writeErr
	}
	if _, writeErr := stderr.Write(r.stderr); writeErr != nil {
		return writeErr
	}
	return err
}

const threeCommands = prologue + `f one echo first
f two sh -c 'echo second; echo oops >&2; exit 4'
f three printf third
z`

// TestCutStreamIsNeverAccepted cuts a stream after every byte, with no error from the
// connection, as a server whose backend breaks does. The result is either complete or
// an error, never a part.
func TestCutStreamIsNeverAccepted(t *testing.T) {
	argv := (&transfer{stall: time.Minute}).argv(strings.Repeat("N", 26), "", threeCommands, nil)
	whole := record1(t, argv)
	for name, length := range map[string]int{"stdout": len(whole.stdout), "stderr": len(whole.stderr)} {
		for at := range length {
			cut := whole
			if name == "stdout" {
				cut.stdout = cut.stdout[:at]
			} else {
				cut.stderr = cut.stderr[:at]
			}
			dir := t.TempDir()
			outPath, errPath := filepath.Join(dir, "out"), filepath.Join(dir, "err")
			for path, content := range map[string][]byte{outPath: cut.stdout, errPath: cut.stderr} {
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tr := &transfer{spool: dir}
			frames, err := tr.check(framing{strings.Repeat("N", 26)}, outPath, errPath)
			if !errors.Is(err, errShort) {
				t.Errorf("%s cut at %d of %d: %v", name, at, length, err)
			}
			checkThree(t, frames)
		}
	}
}

// checkThree checks the received frames of threeCommands.
func checkThree(t *testing.T, frames []frame) {
	t.Helper()
	want := []struct {
		text, stderr string
		code         int
	}{{"first\n", "", 0}, {"second\n", "oops", 4}, {"third", "", 0}}
	for i, f := range frames {
		if output(t, f) != want[i].text || strings.TrimSpace(f.stderr) != want[i].stderr || f.code != want[i].code {
			t.Errorf("frame %d: %q %q %d", i, output(t, f), f.stderr, f.code)
		}
	}
}

// TestFaultsAreRetriedOrReported checks that a retry succeeds after each fault that
// occurs only on the first try, and that a permanent fault gives an error that
// describes it.
func TestFaultsAreRetriedOrReported(t *testing.T) {
	broken := errors.New("connection reset by peer")
	faults := map[string]func(r taken) (taken, error){
		"cut short, no error": func(r taken) (taken, error) { r.stdout = r.stdout[:len(r.stdout)/2]; return r, nil },
		"cut short, error":    func(r taken) (taken, error) { r.stdout = r.stdout[:len(r.stdout)/2]; return r, broken },
		"nothing, no error":   func(taken) (taken, error) { return taken{}, nil },
		"stderr lost":         func(r taken) (taken, error) { r.stderr = nil; return r, nil },
		"a byte flipped": func(r taken) (taken, error) {
			r.stdout = bytes.Replace(r.stdout, []byte("second"), []byte("secund"), 1)
			return r, nil
		},
		"a byte missing": func(r taken) (taken, error) {
			r.stdout = bytes.Replace(r.stdout, []byte("third"), []byte("thid"), 1)
			return r, nil
		},
		"a command missing":     func(r taken) (taken, error) { r.stdout = without(r.stdout, "two"); return r, nil },
		"errors of one missing": func(r taken) (taken, error) { r.stderr = without(r.stderr, "two"); return r, nil },
		"something before it":   func(r taken) (taken, error) { r.stdout = append([]byte("motd\n"), r.stdout...); return r, nil },
	}
	for name, spoil := range faults {
		t.Run(name, func(t *testing.T) {
			once := &faulty{t: t, spoil: func(try int, r taken) (taken, error) {
				if try == 1 {
					return spoil(r)
				}
				return r, nil
			}}
			frames, err := fetch(t, once, time.Minute, threeCommands)
			if err != nil || len(frames) != 3 || once.try != 2 {
				t.Errorf("after one fault: %d frames, %d tries, %v", len(frames), once.try, err)
			}
			checkThree(t, frames)
			always := &faulty{t: t, spoil: func(_ int, r taken) (taken, error) { return spoil(r) }}
			frames, err = fetch(t, always, time.Minute, threeCommands)
			cause := errShort
			if strings.Contains(name, ", error") {
				cause = broken // the connection's own error, and nothing besides
			}
			if !errors.Is(err, cause) || len(frames) != 0 || always.try != tries || !strings.Contains(err.Error(), "ns/pod/container") {
				t.Errorf("with the fault always: %d frames, %d tries, %v", len(frames), always.try, err)
			}
			if cause == broken && errors.Is(err, errShort) {
				t.Errorf("two causes of one fault: %v", err)
			}
		})
	}
}

// without removes the output of one command from a stream.
func without(stream []byte, name string) []byte {
	from := bytes.LastIndexByte(stream[:bytes.Index(stream, []byte(" {"+name))], '\n') + 1
	rest := stream[from:]
	end := bytes.Index(rest, []byte(" }"))
	end += bytes.IndexByte(rest[end:], '\n') + 1
	return append(slices.Clone(stream[:from]), rest[end:]...)
}

// TestCompleteOutputCountsDespiteError checks that output with a correct checksum
// counts as complete, even if the connection ends with an error.
func TestCompleteOutputCountsDespiteError(t *testing.T) {
	late := &faulty{t: t, spoil: func(_ int, r taken) (taken, error) { return r, errors.New("error at the end") }}
	frames, err := fetch(t, late, time.Minute, threeCommands)
	if err != nil || len(frames) != 3 || late.try != 1 {
		t.Errorf("%d frames, %d tries, %v", len(frames), late.try, err)
	}
}

// TestCompletePartIsNotRequestedAgain checks that the complete part of a broken stream
// is not requested again.
func TestCompletePartIsNotRequestedAgain(t *testing.T) {
	const text = prologue + `i=0;for b;do i=$((i+1));f "$i name" printf '%s' "$b";f "$i done" true;done
z`
	var asked [][]string
	cutting := &faulty{t: t, spoil: func(_ int, r taken) (taken, error) {
		third := bytes.Index(r.stdout, []byte("{2 done"))
		if third > 0 {
			r.stdout = r.stdout[:third+3]
		}
		return r, nil
	}}
	tr := &transfer{exec: counting{cutting, &asked}, spool: t.TempDir(), stall: time.Minute, patience: impatient()}
	groups, err := tr.runForEach(t.Context(), someContainer, text, []string{"br0", "br 1", "$2", "br3", "br4"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range groups {
		names = append(names, output(t, g[0]))
	}
	expect.Equal(t, fmt.Sprintf("%q", names), `["br0" "br 1" "$2" "br3" "br4"]`)
	if len(asked) != 5 || len(asked[4]) != 1 {
		t.Errorf("asked for %q", asked)
	}
	none := &faulty{t: t, spoil: func(int, taken) (taken, error) { return taken{}, nil }}
	tr.exec = none
	if _, err := tr.runForEach(t.Context(), someContainer, text, []string{"br0"}); !errors.Is(err, errShort) || none.try != tries {
		t.Errorf("%d tries: %v", none.try, err)
	}
}

// counting records the arguments of each command.
type counting struct {
	Executor
	asked *[][]string
}

func (c counting) Exec(ctx context.Context, target Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	*c.asked = append(*c.asked, argv[8:])
	return c.Executor.Exec(ctx, target, argv, stdin, stdout, stderr)
}

// TestMissingToolsAreNamed checks that the error names missing standard tools, and that no
// further try is made.
func TestMissingToolsAreNamed(t *testing.T) {
	for _, missing := range []string{"tee", "cksum"} {
		bin := t.TempDir()
		for _, tool := range []string{"tee", "cksum", "sh"} {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Fatal(err)
			}
			if tool != missing {
				if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var asked [][]string
		_, err := fetch(t, counting{loopback{[]string{"env", "PATH=" + bin, "sh"}}, &asked}, time.Minute, prologue+"f one echo first\nz")
		if !errors.Is(err, errNoTool) || !strings.Contains(err.Error(), missing) || len(asked) != 1 {
			t.Errorf("without %s: %d tries, %v", missing, len(asked), err)
		}
	}
}

// stalling sends a part and then nothing, until the caller gives up.
type stalling struct {
	t    *testing.T
	seen int
}

func (s *stalling) Exec(ctx context.Context, _ Target, argv []string, _ io.Reader, stdout, _ io.Writer) error {
	s.seen++
	whole := record1(s.t, argv)
	stdout.Write(whole.stdout[:len(whole.stdout)/2])
	<-ctx.Done()
	// An abandoned connection may still deliver data.
	go stdout.Write(whole.stdout)
	return ctx.Err()
}

func TestStall(t *testing.T) {
	s := &stalling{t: t}
	_, err := fetch(t, s, 50*time.Millisecond, threeCommands)
	if !errors.Is(err, kube.ErrSilent) || s.seen != tries || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("%d tries: %v", s.seen, err)
	}
}

// TestInterruptedRunIsNotRepeated checks that an interrupted run is not repeated, and
// that it waits for the command to end.
func TestInterruptedRunIsNotRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	begun := make(chan bool, tries)
	tr := &transfer{exec: notifying{loopback{[]string{"sh"}}, begun}, spool: dir, stall: time.Minute, patience: impatient()}
	go func() {
		<-begun
		cancel()
	}()
	_, err := tr.run(ctx, someContainer, prologue+"f forever sleep 1000\nz")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || len(begun) > 0 {
		t.Errorf("%d files are left, %d more tries", len(left), len(begun))
	}
}

type notifying struct {
	Executor
	begun chan bool
}

func (n notifying) Exec(ctx context.Context, target Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	n.begun <- true
	return n.Executor.Exec(ctx, target, argv, stdin, stdout, stderr)
}

// TestFullDiskIsReported checks that an error of this machine is reported as such, without
// another try.
func TestFullDiskIsReported(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &spool{file: file, came: func(int) {}, queue: make(chan []byte, 1), done: make(chan error, 1)}
	go s.drain(cancel)
	for range 10 {
		if _, err := s.Write([]byte("data")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); !errors.Is(err, errLocal) || !errors.Is(context.Cause(ctx), errLocal) {
		t.Errorf("%v, %v", err, context.Cause(ctx))
	}
}

// TestStreamDoesNotWaitForTheDisk checks that the stream does not wait for the disk.
func TestStreamDoesNotWaitForTheDisk(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &spool{file: w, came: func(int) {}, queue: make(chan []byte, maxQueue), done: make(chan error, 1)}
	go s.drain(func(error) {})
	piece := make([]byte, 32<<10)
	const pieces = 1000
	for range pieces { // the pipe has no reader, and holds 64 KiB
		if _, err := s.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, r)
		got <- n
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != pieces*int64(len(piece)) {
		t.Errorf("%d bytes were kept", n)
	}
	if _, err := s.Write(piece); err == nil {
		t.Error("a spool that was closed takes more")
	}
}

// TestEndlessStreamIsAbandoned checks that a container that never stops sending is
// abandoned, and not tried again.
func TestEndlessStreamIsAbandoned(t *testing.T) {
	var asked [][]string
	tr := &transfer{exec: counting{loopback{[]string{"sh"}}, &asked}, spool: t.TempDir(), stall: time.Minute, patience: impatient(), maxBytes: 1 << 20}
	_, err := tr.run(t.Context(), someContainer, "exec cat /dev/zero")
	if !errors.Is(err, archive.ErrLimit) || !strings.Contains(err.Error(), "--max-size") {
		t.Error(err)
	}
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
	left, err := os.ReadDir(tr.spool)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
