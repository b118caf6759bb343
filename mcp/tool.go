package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/set"
)

// toolTime bounds one run of a tool. A trace of OVS 3.1.0 need not end by itself.
const toolTime = time.Minute

// runTool runs a tool beside the replica of a node and writes its output to out.
func runTool(ctx context.Context, node *set.Node, wd *workdir.Dir, out io.Writer, argv ...string) error {
	state, err := running(ctx, node, wd)
	if err != nil {
		return err
	}
	executor, err := node.Executor(ctx, wd, state, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	stderr := &beginning{}
	exit, err := executor.Exec(ctx, runtime.Command{Argv: argv, Env: replica.Scripts(wd, state.Kinds).Environment(), Stdout: out, Stderr: stderr})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s did not end within %v", argv[0], toolTime)
	case err != nil:
		return err
	case exit != 0:
		return fmt.Errorf("%s: exit code %d: %s", argv[0], exit, terminal.Escape(strings.TrimSpace(stderr.String())))
	}
	return nil
}

// beginning keeps the beginning of what is written to it.
type beginning struct{ bytes.Buffer }

func (b *beginning) Write(text []byte) (int, error) {
	const most = 4 << 10
	b.Buffer.Write(text[:min(len(text), max(0, most-b.Len()))])
	return len(text), nil
}

var (
	tableName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	columnNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(, *[A-Za-z_][A-Za-z0-9_]*)*$`)
	zoneFilter  = regexp.MustCompile(`^zone=([0-9]{1,5})$`)
)

// checkText checks a text that becomes an argument of a tool: it can't be an option.
func checkText(what, text string) error {
	const most = 32 << 10
	switch {
	case text == "":
		return fmt.Errorf("%s is missing", what)
	case strings.HasPrefix(text, "-"):
		return fmt.Errorf("%s begins with a dash: %q", what, text[:min(len(text), 80)])
	case len(text) > most:
		return fmt.Errorf("%s has more than %d bytes", what, most)
	case strings.ContainsAny(text, "\x00\n\r"):
		return fmt.Errorf("%s has more than one line", what)
	}
	return nil
}

// checkPattern checks a text against a pattern.
func checkPattern(what, text string, pattern *regexp.Regexp) error {
	if err := checkText(what, text); err != nil {
		return err
	}
	if !pattern.MatchString(text) {
		return fmt.Errorf("%s is not valid: %q", what, text[:min(len(text), 80)])
	}
	return nil
}

// wrongValue returns the error for a value that is not on the list of a tool.
func wrongValue(what, value string, allowed ...string) error {
	return fmt.Errorf("%s %q is refused; it is one of: %s", what, value[:min(len(value), 80)], strings.Join(allowed, ", "))
}
