package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/terminal"
)

// IO holds what a command reads from and writes to.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Program  string // path by which the program was called

	format   string // of the output: table, json or yaml
	warnings int    // number of warnings so far
}

// output is the standard output of a command. It keeps the first error of a write: most
// printing functions don't check it, and run does, once for all commands.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// check returns the error of a command, or that of its output: what was printed then lacks a
// part, whatever else the command did.
func (o *output) check(err error) error {
	if o.err == nil {
		return err
	}
	failed := fmt.Errorf("can't write the output: %w", o.err)
	if err == nil || errors.Is(err, o.err) || errors.Is(err, errIncomplete) || errors.Is(err, errDrift) {
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

// System returns the standard streams of the process, and its own path.
func System() IO { return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Program: os.Args[0]} }

// fileOf returns the file that a stream is, nil for another stream.
func fileOf(stream any) *os.File {
	if checked, ok := stream.(*output); ok {
		stream = checked.Writer
	}
	f, _ := stream.(*os.File)
	return f
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f := fileOf(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// interactive reports whether both input and output are a terminal.
func (o *IO) interactive() bool { return isTerminal(o.In) && isTerminal(o.Out) }

// formatTable is the output format for people.
const formatTable = "table"

// choice is a flag that takes one of a few values.
type choice struct {
	value   *string
	choices []string
}

// Set implements pflag.Value.
func (c choice) Set(s string) error {
	if !slices.Contains(c.choices, s) {
		return fmt.Errorf("choose one of %s", strings.Join(c.choices, ", "))
	}
	*c.value = s
	return nil
}

func (c choice) String() string { return *c.value }

// Type implements pflag.Value.
func (c choice) Type() string { return "string" }

// choiceFlag adds a flag that takes one of choices, the first by default.
func choiceFlag(c *cobra.Command, value *string, name, short, usage string, choices ...string) {
	*value = choices[0]
	c.Flags().VarP(choice{value, choices}, name, short, usage)
	_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// outputFlag adds --output.
func (o *IO) outputFlag(c *cobra.Command) {
	choiceFlag(c, &o.format, "output", "o", "table, json or yaml", formatTable, "json", "yaml")
}

// emit prints v as JSON or YAML, or calls printTable.
func (o *IO) emit(v any, printTable func()) error {
	switch o.format {
	case "json":
		return terminal.WriteJSON(o.Out, v)
	case "yaml":
		return terminal.WriteYAML(o.Out, v)
	}
	printTable()
	return nil
}

// headline prints a line with a line of asterisks below it.
func (o *IO) headline(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(o.Out, "%s\n%s\n", line, strings.Repeat("*", len(line)))
}

// warn prints a warning. The text comes from a source, which can cause any
// number of warnings of any length: both are bounded.
func (o *IO) warn(format string, args ...any) {
	const maxWarnings, maxBytes = 500, 4096
	o.warnings++
	switch {
	case o.warnings < maxWarnings:
		fmt.Fprintf(o.Err, "warning: %s\n", terminal.EscapeLines(openflow.Shorten(fmt.Sprintf(format, args...), maxBytes)))
	case o.warnings == maxWarnings:
		fmt.Fprintln(o.Err, "warning: further warnings are not printed")
	}
}

// warnIfAny prints a text as a warning unless it is empty.
func (o *IO) warnIfAny(text string) {
	if text != "" {
		o.warn("%s", text)
	}
}

// warnEach prints a warning for each text.
func (o *IO) warnEach(prefix string, texts []string) {
	for _, text := range texts {
		o.warn("%s%s", prefix, text)
	}
}

// progress prints the progress of a command to stderr: on a terminal as one line that
// is redrawn, else as one line per second.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time // when reading the current source began
	last     time.Time // when a line was last printed
	read     int64     // bytes of the current source
	drawn    bool      // there is a line to clear
}

func (o *IO) progress() *progress {
	now := time.Now()
	return &progress{out: o.Err, terminal: isTerminal(o.Err), began: now, last: now}
}

func (p *progress) print(format string, args ...any) {
	now := time.Now()
	interval := time.Second
	if p.terminal {
		interval = 100 * time.Millisecond
	}
	if now.Sub(p.last) < interval {
		return
	}
	p.last = now
	line := terminal.Escape(fmt.Sprintf(format, args...))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\033[K%s", line)
		p.drawn = true
	} else {
		fmt.Fprintln(p.out, line)
	}
}

// bytes prints how much of a source was read, of total bytes if that is known.
func (p *progress) bytes(read, total int64) {
	if read < p.read { // the next source
		p.began = time.Now()
	}
	p.read = read
	spent := time.Since(p.began)
	rate := mebi(read) / max(spent.Seconds(), 1e-3)
	if total > 0 && read > 0 && read <= total {
		left := time.Duration(float64(spent) / float64(read) * float64(total-read))
		p.print("reading: %.0f of %.0f MiB (%d %%), %.0f MiB/s, %v left", mebi(read), mebi(total), read*100/total, rate, left.Round(time.Second))
		return
	}
	p.print("reading: %.0f MiB, %.0f MiB/s", mebi(read), rate)
}

// step prints what a step does: a line at its beginning, which stays, and then its output.
func (p *progress) step(name, line string) {
	const width = 79
	if line != "" {
		p.print("%s: %s", name, openflow.Shorten(line, max(0, width-len(name)-len(": ..."))))
		return
	}
	p.end()
	fmt.Fprintln(p.out, terminal.Escape(name))
}

// end clears the line that was drawn, before anything else is printed.
func (p *progress) end() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\033[K")
		p.drawn = false
	}
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }
