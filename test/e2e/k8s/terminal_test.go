package k8s

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a real terminal, with a program in it.
type terminal struct {
	keyboard *os.File
	command  *exec.Cmd

	mu     sync.Mutex
	screen bytes.Buffer
}

// inTerminal starts a program in a new terminal of 33 rows and 101 columns.
func inTerminal(t *testing.T, command *exec.Cmd) *terminal {
	t.Helper()
	// NONBLOCK lets Close end the read.
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	term := &terminal{keyboard: keyboard, command: command}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	term.resize(t, 33, 101)
	inside, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	command.Stdin, command.Stdout, command.Stderr = inside, inside, inside
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := keyboard.Read(part)
			term.mu.Lock()
			term.screen.Write(part[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

func (term *terminal) resize(t *testing.T, rows, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(term.keyboard.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
}

// cooked reports whether the terminal echoes and makes lines and signals of what is typed.
func (term *terminal) cooked(t *testing.T) bool {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(term.keyboard.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	const all = unix.ECHO | unix.ICANON | unix.ISIG
	return settings.Lflag&all == all
}

// types writes a line as if it were typed.
func (term *terminal) types(t *testing.T, line string) {
	t.Helper()
	if _, err := term.keyboard.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// shows reports whether a text has been on the screen.
func (term *terminal) shows(text string) bool {
	term.mu.Lock()
	defer term.mu.Unlock()
	return strings.Contains(term.screen.String(), text)
}
