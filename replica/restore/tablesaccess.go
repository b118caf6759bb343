package restore

import (
	"context"
	"io"
	"iter"
	"os"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// The methods that the table steps (flows, groups, meters, TLV maps, hidden
// flows) use.

// ofctl runs ovs-ofctl in an OpenFlow version on a bridge.
func (n *Node) ofctl(ctx context.Context, stdin io.Reader, openflow string, b *Bridge, command string, args ...string) ([]byte, error) {
	return n.ofctlOptions(ctx, stdin, []string{numbered, "-O", openflow}, b, command, args...)
}

func (n *Node) ofctlOptions(ctx context.Context, stdin io.Reader, options []string, b *Bridge, command string, args ...string) ([]byte, error) {
	argv := append([]string{"ovs-ofctl"}, options...)
	argv = append(argv, "--", command, n.management(b))
	return n.Runtime.Tool(ctx, n.runDir(), stdin, append(argv, args...)...)
}

// dumpFlows yields the flows of a running bridge as ovs-ofctl prints them, and
// lines that are not flows; failed is set at the end.
func (n *Node) dumpFlows(ctx context.Context, version, spelling string, b *Bridge, failed *error) iter.Seq2[openflow.Flow, *openflow.Problem] {
	return func(yield func(openflow.Flow, *openflow.Problem) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		out, in := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := n.Runtime.ToolTo(ctx, n.runDir(), nil, in, "ovs-ofctl", spelling, "-O", version, "--", "dump-flows", n.management(b))
			in.Close()
			ended <- err
		}()
		for flow, problem := range openflow.Flows(out) {
			if !yield(flow, problem) {
				break
			}
		}
		out.Close() // a program that still writes ends
		*failed = <-ended
	}
}

// recorded opens a file of the workdir; ok is false where there is none.
func (n *Node) recorded(path string) (f *os.File, ok bool, err error) { return n.open(path) }

// eachLine calls do for every line of a file; ok is false where there is none.
func (n *Node) eachLine(path string, do func(line string) error) (ok bool, err error) {
	f, ok, err := n.open(path)
	if !ok {
		return false, err
	}
	defer f.Close()
	return true, eachLine(f, do)
}

// version is the OpenFlow version of a collected dump, as the manifest has it.
func (n *Node) version(path string) string {
	c := n.Manifest.Collection(workdir.OVS)
	if c == nil {
		return ""
	}
	for _, f := range c.Files {
		if f.Path == n.relative(path) {
			return f.OpenFlow
		}
	}
	return ""
}

// speaks returns the newest OpenFlow version that a bridge accepts.
func (n *Node) speaks(ctx context.Context, b *Bridge) (string, error) {
	v, err := n.newest(ctx, b)
	return v.String(), err
}

func (n *Node) until(ctx context.Context, done func() (bool, error)) error { return until(ctx, done) }

func eachLineOf(text io.Reader, do func(line string) error) error { return eachLine(text, do) }

func versions() []string {
	var names []string
	for _, v := range openflow.Versions() {
		names = append(names, v.String())
	}
	return names
}

func allowed(protocols []string, version string) bool {
	return len(protocols) == 0 || slices.Contains(protocols, version)
}

// failOpenPriority is the priority of the hidden flow of a bridge that has failed
// open (ofproto/fail-open.h).
const failOpenPriority = 15790320

func isFailOpen(h hiddenFlow) bool { return h.priority == failOpenPriority }

// recordedFailOpen reports whether the live bridge had failed open.
func (n *Node) recordedFailOpen(_ context.Context, b *Bridge) (failed, known bool, err error) {
	hidden, known, err := n.recordedHidden(b)
	return slices.ContainsFunc(hidden.list, isFailOpen), known, err
}

// recordedInBand reports whether the live bridge had flows for in-band control.
func (n *Node) recordedInBand(_ context.Context, b *Bridge) (inBand, known bool, err error) {
	hidden, known, err := n.recordedHidden(b)
	return slices.ContainsFunc(hidden.list, func(h hiddenFlow) bool { return !isFailOpen(h) }), known, err
}

// failsOpen reports whether the bridge of the replica has failed open.
func (n *Node) failsOpen(ctx context.Context, b *Bridge) (bool, error) {
	hidden, err := n.hidden(ctx, b)
	return slices.ContainsFunc(hidden.list, isFailOpen), err
}
