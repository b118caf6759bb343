package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/test/check/expect"
)

func TestRun(t *testing.T) {
	out, err := Run(context.Background(), Command{Argv: []string{"cat"}, Stdin: strings.NewReader("a\nb")})
	if err != nil {
		t.Error(err)
	}
	expect.Equal(t, string(out), "a\nb", "the input of cat")
	// No shell reads the arguments.
	out, err = Run(context.Background(), Command{Argv: []string{"echo", "$HOME", "`id`", "; ls", "*"}})
	if err != nil {
		t.Error(err)
	}
	expect.Equal(t, string(out), "$HOME `id` ; ls *\n", "the arguments")
	dir := t.TempDir()
	out, err = Run(context.Background(), Command{Argv: []string{"sh", "-c", "pwd; echo $X; env | wc -l"},
		Env: []string{"X=1"}, Dir: dir})
	if want := dir + "\n1\n"; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

// TestErrorHoldsTheReasonOfTheProgram also checks that long arguments are cut.
func TestErrorHoldsTheReasonOfTheProgram(t *testing.T) {
	for _, c := range []struct {
		script, want string
	}{
		{"echo out; echo 'OFPT_ERROR: OFPBMC_BAD_PREREQ' >&2; echo '00000000  06 0e' >&2; exit 3",
			"sh: exit status 3: OFPT_ERROR: OFPBMC_BAD_PREREQ"},
		{"echo 'only here'; exit 1", "sh: exit status 1: only here"},
		{"exit 2", "sh -c exit 2: exit status 2"},
		{"kill -9 $$", "sh -c kill -9 $$: signal: killed"},
	} {
		out, err := Run(context.Background(), Command{Argv: []string{"sh", "-c", c.script}})
		var failed *Error
		if !errors.As(err, &failed) || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.script, err, c.want)
			continue
		}
		if failed.Stdout != string(out) || errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: %+v", c.script, failed)
		}
	}
	long := strings.Repeat("long ", 1<<15)
	if _, err := Run(context.Background(), Command{Argv: []string{"false", long}}); err == nil ||
		len(err.Error()) > 1000 || !strings.Contains(err.Error(), "...: ") {
		t.Errorf("a long argument: %.1000v", err)
	}
	_, err := Run(context.Background(), Command{Argv: []string{"no-such-program-here"}})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing program: got %v, want %v", err, exec.ErrNotFound)
	}
	_, err = Run(context.Background(), Command{Argv: []string{os.DevNull}})
	if err == nil || errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a file that is no program: got %v, want another error", err)
	}
}

// TestProgramEndsWithItsContext runs a program whose child keeps the output open.
func TestProgramEndsWithItsContext(t *testing.T) {
	printed := filepath.Join(t.TempDir(), "printed")
	if err := syscall.Mkfifo(printed, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.ReadFile(printed) // until the program has printed
		cancel()
	}()
	out, err := Run(ctx, Command{Argv: []string{"sh", "-c", "sleep 60 & echo $!; : >" + printed + "; sleep 60"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Errorf("the end of the child was awaited: %v", err)
	}
}

// TestLateOutputIsRead runs a program whose output ends after it, as it seems to do if the
// machine is too busy to read it at once.
func TestLateOutputIsRead(t *testing.T) {
	out, err := Run(context.Background(), Command{Argv: []string{"sh", "-c", "(sleep 1.5; echo late) & echo soon"}})
	if err != nil {
		t.Error(err)
	}
	expect.Equal(t, string(out), "soon\nlate\n", "what was printed")
}
