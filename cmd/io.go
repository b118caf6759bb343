package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// IO holds what a command reads from and writes to.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Program  string // path by which the program was called

	format  string    // of the output: table, json or yaml
	call    show.Call // makes command lines for pasting
	printed *show.Page
}

// output is the standard output of a command. It keeps the first error of a write: most
// printing functions don't check it, and run does, once for all commands.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	count, err := o.Writer.Write(text)
	o.err = cmp.Or(o.err, err)
	return count, err
}

// check returns the error of a command. After a failed write, what was printed lacks a part,
// whatever else the command did: then the error is about the output too.
func (o *output) check(err error) error {
	if o.err == nil {
		return err
	}
	failed := fmt.Errorf("can't write the output: %w", o.err)
	if err == nil || errors.Is(err, o.err) || errors.Is(err, errIncomplete) || errors.Is(err, errFound) {
		return failed
	}
	return errors.Join(err, failed)
}

// stdout returns standard output for the programs that a command runs, which need the
// terminal or the file itself.
func (o *IO) stdout() io.Writer {
	if checked, ok := o.Out.(*output); ok {
		return checked.Writer
	}
	return o.Out
}

// openInput opens the file that a user names, or standard input for "-". Reads end with ctx.
func (o *IO) openInput(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(interrupt.Pipe(ctx, o.In)), nil
	}
	return interrupt.Open(ctx, name)
}

// System returns the standard streams of the process, and its own path.
func System() IO { return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Program: os.Args[0]} }

// fileOf returns the file that a stream is, nil for another stream.
func fileOf(stream any) *os.File {
	if checked, ok := stream.(*output); ok {
		stream = checked.Writer
	}
	file, _ := stream.(*os.File)
	return file
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file := fileOf(stream)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// terminalWidth returns the columns of a terminal; 0 for any other stream.
func terminalWidth(stream any) int {
	if file := fileOf(stream); file != nil {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// interactive reports whether both input and output are a terminal.
func (o *IO) interactive() bool { return isTerminal(o.In) && isTerminal(o.Out) }

// Output formats: for people, and a page.
const (
	formatTable = "table"
	formatHTML  = "html"
)

// outputFlag adds --output.
func (o *IO) outputFlag(command *cobra.Command) {
	choiceFlag(command, &o.format, "output", "o", "output format: table, json or yaml", formatTable, "json", "yaml")
}

// emit prints a value as JSON or YAML, or calls print for people.
func (o *IO) emit(value any, print func(*show.Page)) error {
	switch o.format {
	case "json":
		return terminal.WriteJSON(o.Out, value)
	case "yaml":
		return terminal.WriteYAML(o.Out, value)
	}
	print(o.page())
	return nil
}

// list returns a list that the command prints one value after the other.
func (o *IO) list() *show.List { return &show.List{Out: o.Out, Format: o.format} }

// page returns what the command prints on.
func (o *IO) page() *show.Page {
	if o.printed == nil {
		o.printed = &show.Page{Out: o.painted(o.Out), Err: o.painted(o.Err), Width: terminalWidth(o.Out), ErrWidth: terminalWidth(o.Err), Call: o.call}
	}
	return o.printed
}

// painted returns a stream for people: a terminal has colours, unless a program reads the output.
func (o *IO) painted(stream io.Writer) io.Writer {
	if isTerminal(stream) && terminal.HasColours() && (o.format == "" || o.format == formatTable) {
		return terminal.NewPainter(stream)
	}
	return stream
}
