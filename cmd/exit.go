package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/terminal"
)

// The exit codes of the program; docs/usage.md lists them.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitIncomplete = 3
	exitFound      = 4
	exitNotFound   = 127 // of exec, as in sh(1): no such program
)

var (
	// errIncomplete ends a command that did its work with a part missing. The command
	// has printed which part.
	errIncomplete = errors.New("incomplete")
	// errFound ends a command that found something wrong, or that what it compares differs. The command has printed it.
	errFound = errors.New("found")
)

// foundIf returns errFound if something was found.
func foundIf(something bool) error {
	if something {
		return errFound
	}
	return nil
}

// exitCode ends a command with the exit code of the program that it ran.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// worst returns the error of a command whose parts had these errors: all failures, or else
// errFound if one found something, or else errIncomplete if a part was incomplete, or else nil.
func worst(errs ...error) error {
	var failures []error
	var result error
	for _, err := range errs {
		switch {
		case errors.Is(err, errFound):
			result = errFound
		case errors.Is(err, errIncomplete):
			result = cmp.Or(result, errIncomplete)
		case err != nil:
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return result
}

// exit maps the error of a command to the program's exit code and prints it.
func exit(ctx context.Context, stderr io.Writer, err error) int {
	var program exitCode
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &program):
		return int(program)
	case errors.Is(err, errIncomplete):
		return exitIncomplete
	case errors.Is(err, errFound):
		return exitFound
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "ovs-offline: interrupted")
		return exitFailed
	}
	begin, code := "", exitFailed
	switch fault.Of(err) {
	case fault.Usage:
		begin, code = "wrong usage: ", exitUsage
	case fault.Undetermined:
		code = exitIncomplete
	}
	fmt.Fprintf(stderr, "ovs-offline: %s%s\n", begin, terminal.EscapeLines(err.Error()))
	return code
}
