package collect

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Source is where the data of nodes comes from: files, an sos report, a database
// file, or a live node.
type Source interface {
	// Kinds returns the kinds of data that the source is certain to hold. If the
	// workdir holds one of them already, Collect fails before it reads the source.
	Kinds() []workdir.Kind
	// Read reads the source once and keeps the files it needs in the folder spool.
	Read(ctx context.Context, spool string) (*Found, error)
}

// Found is everything that a source holds.
type Found struct {
	Inputs []Input
	Nodes  []Named
	// Lost lists unreadable inputs, and unreadable parts of inputs that belong to no
	// node.
	Lost []string
	// Unused are the paths of outputs of Open vSwitch and OVN outside reports that nothing uses.
	Unused []string
	// Remarks are findings about several nodes or inputs.
	Remarks []string
	// Members are the files of all members of clustered OVN databases, and Statuses what their servers
	// printed of themselves.
	Members  []recording.Member
	Statuses []Status
	// Repeated counts the outputs of commands that a text has several times; one of each is in Nodes.
	Repeated int
}

// Status is the output of cluster/status of a server.
type Status struct {
	archive.File
	raft.Status
	Origin string
}

// Input is one of the paths that a user gave, with a description of its content.
type Input struct {
	Path  string   `json:"path"`
	Kinds []string `json:"kinds"` // "sos report (sos 4.8.2)", "OpenShift must-gather 4.14.1"
}

// Named is a node under a name that no other node has.
type Named struct {
	Name string
	*recording.Recording
}

// pick returns the nodes with the given names or hosts, or all nodes if there are no
// names. It fails if a name is not found.
func (f *Found) pick(names []string) ([]Named, error) {
	if len(names) == 0 {
		return f.Nodes, nil
	}
	var picked []Named
	for _, name := range names {
		matching := func(matches func(Named) bool) (list []Named) {
			for _, named := range f.Nodes {
				if matches(named) {
					list = append(list, named)
				}
			}
			return list
		}
		found := matching(func(named Named) bool { return named.Name == name })
		if len(found) == 0 { // all reports of the host
			found = matching(func(named Named) bool { return sameHost(named.Host, name) })
		}
		picked = append(picked, found...)
		if len(found) == 0 {
			var have []string
			for _, named := range f.Nodes {
				have = append(have, named.Name)
			}
			return nil, fmt.Errorf("%w: no node %q in the inputs; they have %s", ErrNothing, name, strings.Join(have, ", "))
		}
	}
	return picked, nil
}
