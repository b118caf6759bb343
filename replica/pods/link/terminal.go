package link

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"ovs-offline/replica/runtime"
)

// terminal is the terminal of this process while a run in a pod has it.
type terminal struct {
	in      *os.File
	screen  *screen
	before  *term.State
	changed chan os.Signal // when the size changes
}

// takeTerminal makes the terminal of a run pass on each byte as it is typed.
func takeTerminal(command *runtime.Command) (*terminal, error) {
	in, isFile := command.Stdin.(*os.File)
	if !isFile {
		return nil, errors.New("standard input is not a terminal")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	terminal := &terminal{in: in, screen: &screen{out: command.Stdout}, before: before, changed: make(chan os.Signal, 1)}
	signal.Notify(terminal.changed, unix.SIGWINCH)
	command.Stdout, command.Stderr = terminal.screen, terminal.screen
	return terminal, nil
}

// giveBack makes the terminal what it was before. What is printed after an error begins at
// the beginning of a line.
func (t *terminal) giveBack(err error) {
	signal.Stop(t.changed)
	close(t.changed)
	_ = term.Restore(int(t.in.Fd()), t.before) // it was a terminal when the run began
	if err != nil && t.screen.inLine {
		fmt.Fprintln(t.screen.out)
	}
}

// size returns the size of the terminal; 0 if it has none, as a terminal without a size has.
func (t *terminal) size() (columns, rows int) {
	columns, rows, _ = term.GetSize(int(t.in.Fd()))
	return columns, rows
}

// terminalName is the TERM of commands in a pod, as container runtimes set it: images know it,
// and not what each user's terminal is called.
const terminalName = "xterm"

// follow sends the size of the terminal at each change until the terminal is given back.
func (t *terminal) follow(session *ssh.Session) {
	for range t.changed {
		columns, rows := t.size()
		if session.WindowChange(rows, columns) != nil {
			return // the run has ended
		}
	}
}

// screen writes to the terminal and remembers whether the cursor is behind something.
type screen struct {
	out    io.Writer
	inLine bool
}

// Write writes to the terminal.
func (s *screen) Write(data []byte) (int, error) {
	if len(data) > 0 {
		s.inLine = data[len(data)-1] != '\n'
	}
	return s.out.Write(data)
}
