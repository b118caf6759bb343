package cmd

import (
	"errors"
	"fmt"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
)

// advise adds to an error about replicas that do not run the commands that start them.
func (c caller) advise(err error) error {
	err = c.adviseNodes(err)
	if !errors.Is(err, runtime.ErrNotRunning) && !errors.Is(err, replica.ErrNoReport) {
		return err
	}
	separator := ": "
	if strings.Contains(err.Error(), "\n") { // of several nodes
		separator = "\n"
	}
	return fmt.Errorf("%w%sstart one with: %s", err, separator, c.line("start"))
}

// adviseNodes adds the command to each error of a node whose replica can't be asked.
func (c caller) adviseNodes(err error) error {
	down, ok := errors.AsType[*host.UnavailableError](err)
	if !ok {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, part := range joined.Unwrap() {
			all = append(all, c.adviseNodes(part))
		}
		return errors.Join(all...)
	}
	return errors.New(down.Advising(c.start(down.Node)))
}

// warnUnavailable prints a warning for each node of a session whose replica can't be asked. It
// returns a function that does so at the end, for nodes that had no warning yet.
func warnUnavailable(page *show.Page, session *trace.Session, user caller) (again func()) {
	warned := map[string]bool{}
	again = func() {
		for _, down := range session.Unavailable() {
			if !warned[down.Node] {
				warned[down.Node] = true
				page.Warn("%s", down.Advising(user.start(down.Node)))
			}
		}
	}
	again()
	return again
}
