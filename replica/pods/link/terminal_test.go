package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"ovs-offline/replica/runtime"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// user is a user before a real terminal, in which a command runs in a pod.
type user struct {
	t        *testing.T
	keyboard *os.File // and screen
	inside   *os.File // what programs have
	before   *term.State
	end      context.CancelFunc
	outcome  chan outcomeOfRun

	mu   sync.Mutex
	seen bytes.Buffer
}

type outcomeOfRun struct {
	exit int
	err  error
}

// newUser runs a script in the pod, in a terminal of 33 rows and 101 columns.
func newUser(t *testing.T, wd *workdir.Dir, links *Links, script string) *user {
	t.Helper()
	keyboard, inside := newTerminal(t)
	u := &user{t: t, keyboard: keyboard, inside: inside, outcome: make(chan outcomeOfRun, 1)}
	u.resize(33, 101)
	before, err := term.GetState(int(inside.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	u.before = before
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := keyboard.Read(part)
			u.mu.Lock()
			u.seen.Write(part[:n])
			u.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	u.end = cancel
	go func() {
		exit, err := links.Run(ctx, wd, []string{script},
			runtime.Command{Stdin: inside, Stdout: inside, Stderr: inside, Terminal: true})
		u.outcome <- outcomeOfRun{exit, err}
	}()
	return u
}

// newTerminal returns the ends of a terminal.
func newTerminal(t *testing.T) (keyboard, inside *os.File) {
	t.Helper()
	keyboard, inside, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if keyboard, err = interruptible(keyboard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close(); inside.Close() })
	return keyboard, inside
}

func (u *user) resize(rows, columns uint32) {
	u.t.Helper()
	if err := resize(u.keyboard, columns, rows); err != nil {
		u.t.Fatal(err)
	}
	// The kernel sends this to the programs of a terminal that controls them.
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) types(text string) {
	u.t.Helper()
	if _, err := u.keyboard.WriteString(text); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) screen() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen.String()
}

// sees waits until the screen shows what an expression matches, and returns its groups.
func (u *user) sees(expression string) []string {
	u.t.Helper()
	wanted := regexp.MustCompile(expression)
	var found []string
	ovs.Await(u.t, "a screen that shows "+expression, func() bool {
		found = wanted.FindStringSubmatch(u.screen())
		return found != nil
	}, u.screen)
	return found
}

// waits returns the outcome, and checks that the terminal is what it was before.
func (u *user) waits() outcomeOfRun {
	u.t.Helper()
	var got outcomeOfRun
	ovs.Await(u.t, "the end of the run", func() bool {
		select {
		case got = <-u.outcome:
			return true
		default:
			return false
		}
	}, u.screen)
	now, err := term.GetState(int(u.inside.Fd()))
	if err != nil || *now != *u.before {
		u.t.Errorf("the terminal is not what it was: %+v %+v %v", now, u.before, err)
	}
	return got
}

// endsWith waits for the outcome, and checks the exit code.
func (u *user) endsWith(exit int) {
	u.t.Helper()
	if got := u.waits(); got.err != nil || got.exit != exit {
		u.t.Errorf("got exit %d, %v, want %d", got.exit, got.err, exit)
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

func TestTerminalOfACommand(t *testing.T) {
	_, wd, links := newMachine(t)
	u := newUser(t, wd, links, `trap 'echo interrupted' INT
trap 'echo size now $(stty size)' WINCH
tty -s && echo "size $(stty size), $TERM" >/dev/tty
read line; echo "line: $line" >&2
while :; do sleep 0.05; read -r line && [ "$line" = end ] && exit 3; done`)
	u.sees(`size 33 101, xterm\r\n`)
	if now, err := term.GetState(int(u.inside.Fd())); err != nil || *now == *u.before {
		t.Errorf("the terminal at this end changes what is typed: %v", err)
	}
	u.types("some words\r")
	u.sees(`line: some words\r\n`)
	u.types(ctrlC)
	u.sees(`interrupted\r\n`)
	u.resize(20, 70)
	u.sees(`size now 20 70\r\n`)
	u.types("end\r")
	u.endsWith(3)
}

func TestShellInATerminalHasJobs(t *testing.T) {
	_, wd, links := newMachine(t)
	u := newUser(t, wd, links, "PS1='> ' exec bash --norc --noprofile -i")
	u.sees(`> `)
	u.types("echo rea''dy; cat\r")
	u.sees(`ready\r\n`)
	u.types("typed\r")
	u.sees(`typed\r\ntyped\r\n`)
	u.types(ctrlZ)
	u.sees(`Stopped .*cat`)
	u.types("fg\r")
	u.sees(`fg\r\n.*cat\r\n`)
	u.types("again\r")
	u.sees(`again\r\nagain\r\n`)
	u.types(ctrlC)
	u.sees(`\^C\r\n.*> $`)
	u.types("echo $((40+2)); exit 4\r")
	u.sees(`42\r\nexit\r\n`)
	u.endsWith(4)
	if strings.Contains(u.screen(), "no job control") {
		t.Error(u.screen())
	}
}

func TestExitCodeOfACommandThatASignalEnds(t *testing.T) {
	_, wd, links := newMachine(t)
	u := newUser(t, wd, links, "kill -TERM $$")
	u.endsWith(128 + int(unix.SIGTERM))
}

// TestOutputInATerminalIsWhole reads slowly, and the command ends long before its output is read.
func TestOutputInATerminalIsWhole(t *testing.T) {
	const lines = 100_000
	_, wd, links := newMachine(t)
	_, inside := newTerminal(t)
	out := &slow{}
	exit, err := links.Run(t.Context(), wd, []string{fmt.Sprintf("stty -onlcr; seq %d", lines)},
		runtime.Command{Stdin: inside, Stdout: out, Terminal: true})
	if err != nil || exit != 0 {
		t.Errorf("exit %d, %v", exit, err)
	}
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintln(&want, i+1)
	}
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes of %d", out.Len(), want.Len())
	}
}

// slow is a screen that takes some time for each write.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(2 * time.Millisecond)
	return s.Buffer.Write(p)
}

// leaving is a script whose processes do not end by themselves when their terminal does.
// The shell that it becomes has job control: each job is a process group of its own.
const leaving = `trap '' HUP TERM INT
exec bash --norc --noprofile -c 'set -m; echo "pid $$."; sleep 601 & echo "pid $!."; (sleep 602 & echo "pid $!."; wait) & (kill -STOP $BASHPID) & echo "pid $!."; echo all; cat'`

// pids returns what the script has printed.
func (u *user) pids() (list []string) {
	u.t.Helper()
	u.sees(`all\r\n`)
	ovs.Await(u.t, "four processes", func() bool {
		list = nil
		for _, found := range regexp.MustCompile(`pid (\d+)\.`).FindAllStringSubmatch(u.screen(), -1) {
			list = append(list, found[1])
		}
		return len(list) == 4
	}, u.screen)
	u.t.Cleanup(func() { u.killLeft(list) })
	return list
}

// killLeft kills what a failed test has left.
func (u *user) killLeft(pids []string) {
	for _, text := range pids {
		if pid, err := strconv.Atoi(text); err == nil && u.t.Failed() {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func TestAllOfATerminalEndsWithTheNearEnd(t *testing.T) {
	m, wd, links := newMachine(t)
	u := newUser(t, wd, links, leaving)
	pids := u.pids()
	began := time.Now()
	m.closeInput()
	for _, pid := range pids {
		if !isGone(t, pid) {
			t.Errorf("process %s still runs", pid)
		}
	}
	t.Logf("all had ended after %s", time.Since(began))
	if got := u.waits(); !errors.Is(got.err, ErrLost) || !strings.Contains(got.err.Error(), m.String()) {
		t.Errorf("got exit %d, %v, want %v with %s", got.exit, got.err, ErrLost, m)
	}
}

func TestAllOfATerminalEndsWithItsCommand(t *testing.T) {
	_, wd, links := newMachine(t)
	u := newUser(t, wd, links, "sleep 601 & echo \"pid $!.\"; exit 5")
	pid := u.sees(`pid (\d+)\.`)[1]
	u.endsWith(5)
	if !isGone(t, pid) {
		t.Errorf("process %s still runs", pid)
	}
}

// TestTerminalIsGivenBack interrupts a command whose pod answers, and one whose pod does not.
func TestTerminalIsGivenBack(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("the pod answers: %t", answers), func(t *testing.T) {
			m, wd, links := newMachine(t)
			u := newUser(t, wd, links, leaving)
			pids := u.pids()
			u.types("unfinished")
			u.sees("unfinished")
			if !answers {
				m.children[0].Process.Signal(syscall.SIGSTOP)
			}
			u.end()
			if got := u.waits(); !errors.Is(got.err, context.Canceled) {
				t.Errorf("got exit %d, %v, want %v", got.exit, got.err, context.Canceled)
			}
			u.sees(`unfinished\r\n$`)
			if !answers {
				m.children[0].Process.Signal(syscall.SIGCONT)
			}
			for _, pid := range pids {
				if !isGone(t, pid) {
					t.Errorf("process %s still runs", pid)
				}
			}
		})
	}
}

func TestTerminalIsGivenBackWhenThePodIsLost(t *testing.T) {
	m, wd, links := newMachine(t)
	u := newUser(t, wd, links, "echo started; cat")
	u.sees("started\r\n")
	m.kill()
	if got := u.waits(); !errors.Is(got.err, ErrLost) {
		t.Errorf("got exit %d, %v, want %v", got.exit, got.err, ErrLost)
	}
}

// TestClosedTerminalEndsTheCommand shows that a closed window hangs up, also for a command that
// ignores that.
func TestClosedTerminalEndsTheCommand(t *testing.T) {
	_, wd, links := newMachine(t)
	u := newUser(t, wd, links, "trap '' HUP; echo \"pid $$.\"; cat; sleep 601")
	pid := u.sees(`pid (\d+)\.`)[1]
	u.keyboard.Close()
	if !isGone(t, pid) {
		t.Errorf("process %s still runs", pid)
	}
}
