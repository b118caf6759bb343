package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatienceOutlastsARestart checks the pauses between tries: they last long enough
// for a restart, are announced with their cause, and end. The clock is not the real one.
func TestPatienceOutlastsARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := &patience{waiting: func(pause time.Duration,
			cause error) {
			lines = append(lines, fmt.Sprint(pause, " ", cause))
		}}
		began := time.Now()
		err := p.persist(t.Context(), func(again bool) error {
			if again != (len(lines) > 0) {
				t.Errorf("again is %v after %d failures", again, len(lines))
			}
			if time.Since(began) < 15*time.Second {
				return errors.New("refused")
			}
			return nil
		})
		if want := []string{"1s refused", "2s refused", "3s refused", "4s refused", "5s refused"}; err != nil ||
			!slices.Equal(lines, want) {
			t.Errorf("%v: %q, want %q", err, lines, want)
		}
		tried := 0
		began = time.Now()
		err = p.persist(t.Context(), func(bool) error { tried++; return errors.New("refused") })
		if took := time.Since(began); err == nil || took != defaultPatience ||
			err.Error() != fmt.Sprintf("refused (given up after %d tries)", tried) {
			t.Errorf("after %s: %v, want the end of the tries after %s", took, err, defaultPatience)
		}
		// What follows a patience that has ended is tried once.
		tried = 0
		if err := p.persist(t.Context(), func(bool) error { tried++; return errors.New("refused") }); err == nil ||
			tried != 1 {
			t.Errorf("%d tries: %v", tried, err)
		}
	})
}

// TestPauseEndsWithItsContext checks that Ctrl-C ends a pause.
func TestPauseEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &patience{limit: time.Hour, waiting: func(time.Duration, error) { cancel() }}
	if err := p.persist(ctx, func(bool) error { return errors.New("refused") }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// noShell answers as a container runtime whose container has no shell.
type noShell struct {
	asked int
	words string
}

func (n *noShell) Exec(context.Context, Target, []string, io.Reader, io.Writer, io.Writer) error {
	n.asked++
	return errors.New(n.words)
}

// TestImageWithoutShellIsAskedOnce checks that no further try is made in a container
// without a shell, and that the error says so.
func TestImageWithoutShellIsAskedOnce(t *testing.T) {
	for runtime, words := range map[string]string{
		"runc": `Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "4be5": OCI runtime exec failed: exec failed: unable to start container process: exec: "sh": executable file not found in $PATH: unknown`,
		"crun": "Internal error occurred: error executing command in container: executable file `sh` not found in $PATH: No such file or directory",
	} {
		exec := &noShell{words: words}
		_, err := fetch(t, exec, time.Minute, threeCommands)
		if exec.asked != 1 || !errors.Is(err, errNoTool) || !strings.Contains(err.Error(), "lacks a required tool: sh") {
			t.Errorf("%s: asked %d times: %v", runtime, exec.asked, err)
		}
	}
}
