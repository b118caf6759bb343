package cmd

import (
	"errors"
	"fmt"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
)

// advise adds to an error about replicas that do not run the commands that start them.
func (c caller) advise(err error) error {
	err = adviseEach(err, c.call())
	if !errors.Is(err, runtime.ErrNotRunning) && !errors.Is(err, replica.ErrNoReport) {
		return err
	}
	separator := ": "
	if strings.Contains(err.Error(), "\n") { // of several nodes
		separator = "\n"
	}
	return fmt.Errorf("%w%sstart one with: %s", err, separator, c.line("start"))
}

// adviseEach completes the commands that errors advise.
func adviseEach(err error, call show.Call) error {
	adviser, ok := errors.AsType[show.Adviser](err)
	if !ok {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, part := range joined.Unwrap() {
			all = append(all, adviseEach(part, call))
		}
		return errors.Join(all...)
	}
	before, after, found := strings.Cut(err.Error(), adviser.Error())
	if !found { // it is complete
		return err
	}
	node, _, _ := strings.Cut(adviser.Error(), ": ") // named once
	return advisedError{err, strings.TrimSuffix(before, node+": ") + adviser.Advising(call) + after}
}

// advisedError is an error with complete commands in its text.
type advisedError struct {
	error
	text string
}

// Error returns the text with the commands.
func (e advisedError) Error() string { return e.text }

// Unwrap returns the error without the commands.
func (e advisedError) Unwrap() error { return e.error }

// warnUnavailable prints a warning for each node of a session whose replica can't be asked. It
// returns a function that does so at the end, for nodes that had no warning yet.
func warnUnavailable(page *show.Page, session *trace.Session, call show.Call) (again func()) {
	warned := map[string]bool{}
	again = func() {
		for _, down := range session.Unavailable() {
			if !warned[down.Node] {
				warned[down.Node] = true
				page.Warn("%s", down.Advising(call))
			}
		}
	}
	again()
	return again
}
