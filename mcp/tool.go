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
	"ovs-offline/set"
)

// toolTime bounds one run of a tool. A trace of OVS 3.1.0 need not end by itself.
const toolTime = time.Minute

// run runs a tool beside the replica of a node and writes its output to out.
func run(ctx context.Context, n *set.Node, wd *workdir.Dir, out io.Writer, argv ...string) error {
	state, err := running(ctx, n, wd)
	if err != nil {
		return err
	}
	executor, err := n.Executor(ctx, wd, state, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	stderr := &start{}
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

// start keeps the start of what is written to it.
type start struct{ bytes.Buffer }

func (s *start) Write(p []byte) (int, error) {
	const most = 4 << 10
	s.Buffer.Write(p[:min(len(p), max(0, most-s.Len()))])
	return len(p), nil
}

var (
	tableName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	columnNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(, *[A-Za-z_][A-Za-z0-9_]*)*$`)
	zoneFilter  = regexp.MustCompile(`^zone=([0-9]{1,5})$`)
)

// name checks a text that becomes an argument of a tool: it can't be an option.
func name(what, text string) error {
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

// matching checks a text against a pattern.
func matching(what, text string, pattern *regexp.Regexp) error {
	if err := name(what, text); err != nil {
		return err
	}
	if !pattern.MatchString(text) {
		return fmt.Errorf("%s is not valid: %q", what, text[:min(len(text), 80)])
	}
	return nil
}

// wrongAction is the error for an action that is not on the list of a tool.
func wrongAction(action string, allowed ...string) error {
	return fmt.Errorf("action %q is refused; it is one of: %s", action[:min(len(action), 80)], strings.Join(allowed, ", "))
}
