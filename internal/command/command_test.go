package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	out, err := Run(context.Background(), Command{Argv: []string{"cat"}, Stdin: strings.NewReader("a\nb")})
	if err != nil || string(out) != "a\nb" {
		t.Errorf("%q %v", out, err)
	}
	// No shell reads the arguments.
	out, err = Run(context.Background(), Command{Argv: []string{"echo", "$HOME", "`id`", "; ls", "*"}})
	if err != nil || string(out) != "$HOME `id` ; ls *\n" {
		t.Errorf("%q %v", out, err)
	}
	dir := t.TempDir()
	out, err = Run(context.Background(), Command{Argv: []string{"sh", "-c", "pwd; echo $X; env | wc -l"}, Env: []string{"X=1"}, Dir: dir})
	if err != nil || !strings.HasPrefix(string(out), dir+"\n1\n") {
		t.Errorf("%q %v", out, err)
	}
}

// TestErrorHoldsTheReasonOfTheProgram also checks that long arguments are cut.
func TestErrorHoldsTheReasonOfTheProgram(t *testing.T) {
	for _, c := range []struct {
		script, want string
	}{
		{"echo out; echo 'OFPT_ERROR: OFPBMC_BAD_PREREQ' >&2; echo '00000000  06 0e' >&2; exit 3", "sh: exit status 3: OFPT_ERROR: OFPBMC_BAD_PREREQ"},
		{"echo 'only here'; exit 1", "sh: exit status 1: only here"},
		{"exit 2", "sh -c exit 2: exit status 2"},
		{"kill -9 $$", "sh -c kill -9 $$: signal: killed"},
	} {
		out, err := Run(context.Background(), Command{Argv: []string{"sh", "-c", c.script}})
		var failed *Error
		if !errors.As(err, &failed) || err.Error() != c.want {
			t.Errorf("%s: %v", c.script, err)
			continue
		}
		if failed.Stdout != string(out) || errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: %+v", c.script, failed)
		}
	}
	long := strings.Repeat("long ", 1<<15)
	if _, err := Run(context.Background(), Command{Argv: []string{"false", long}}); err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "...: ") {
		t.Errorf("a long argument: %.1000v", err)
	}
	_, err := Run(context.Background(), Command{Argv: []string{"no-such-program-here"}})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
	_, err = Run(context.Background(), Command{Argv: []string{os.DevNull}})
	if err == nil || errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestProgramEndsWithItsContext runs a program whose child keeps the output open.
func TestProgramEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	out, err := Run(ctx, Command{Argv: []string{"sh", "-c", "echo before; sleep 20 & sleep 20"}})
	if !errors.Is(err, context.DeadlineExceeded) || string(out) != "before\n" {
		t.Errorf("%q %v", out, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestLateOutputIsRead runs a program whose output ends after it, as it seems to do if the
// machine is too busy to read it at once.
func TestLateOutputIsRead(t *testing.T) {
	out, err := Run(context.Background(), Command{Argv: []string{"sh", "-c", "(sleep 1.5; echo late) & echo soon"}})
	if err != nil || string(out) != "soon\nlate\n" {
		t.Errorf("%q %v", out, err)
	}
}
