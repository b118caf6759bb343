package cmd

import (
	"errors"

	"ovs-offline/set"
	"ovs-offline/trace"
	"ovs-offline/trace/host"
)

// unavailable returns an error about replicas that can't be asked with the commands that
// start them. The folder is that of the set, or the workdir.
func (o *options) unavailable(err error, folder string) error {
	if _, ok := errors.AsType[*host.UnavailableError](err); !ok {
		return err
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		all = joined.Unwrap()
	}
	for i, one := range all {
		if down, ok := errors.AsType[*host.UnavailableError](one); ok {
			all[i] = errors.New(down.Advising(o.startOf(down.Node, folder)))
		}
	}
	return errors.Join(all...)
}

// startOf returns the command that starts the replica of a node.
func (o *options) startOf(node, folder string) string {
	here := *o
	here.workdir = folder
	if s, err := set.Open(folder, version, nil); err == nil && s != nil {
		return here.self("start --node " + shellWord(node))
	}
	return here.self("start")
}

// warnUnavailable prints a warning for each node of a session whose replica can't be asked. It
// returns a function that does so at the end, for nodes that had no warning yet.
func (o *options) warnUnavailable(s *trace.Session, folder string) (again func()) {
	warned := map[string]bool{}
	again = func() {
		for _, down := range s.Unavailable() {
			if !warned[down.Node] {
				warned[down.Node] = true
				o.warn("%s", down.Advising(o.startOf(down.Node, folder)))
			}
		}
	}
	again()
	return again
}
