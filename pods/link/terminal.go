package link

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/hashicorp/yamux"
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

// takeTerminal makes the terminal of a run pass on each byte as it is typed, and writes its
// size into the request.
func takeTerminal(c *runtime.Command, r *run) (*terminal, error) {
	in, isFile := c.Stdin.(*os.File)
	if !isFile {
		return nil, errors.New("standard input is no terminal")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	t := &terminal{in: in, screen: &screen{out: c.Stdout}, before: before, changed: make(chan os.Signal, 1)}
	signal.Notify(t.changed, unix.SIGWINCH)
	c.Stdout, c.Stderr = t.screen, t.screen
	now, _ := t.size() // 0 if it has none, as a terminal without a size has
	r.Terminal = &now
	return t, nil
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

func (t *terminal) size() (size, error) {
	width, height, err := term.GetSize(int(t.in.Fd()))
	return size{Columns: uint16(width), Rows: uint16(height)}, err
}

// follow sends the size of the terminal at each change until the terminal is given back.
func (t *terminal) follow(stream *yamux.Stream) {
	for range t.changed {
		if now, err := t.size(); err == nil && writeJSON(stream, frameSize, now) != nil {
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
func (s *screen) Write(p []byte) (int, error) {
	if len(p) > 0 {
		s.inLine = p[len(p)-1] != '\n'
	}
	return s.out.Write(p)
}
