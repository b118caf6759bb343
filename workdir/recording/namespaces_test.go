package recording_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir/recording"
)

// TestNamespacesAreLimited checks which outputs of network namespaces a recording keeps.
func TestNamespacesAreLimited(t *testing.T) {
	node := &recording.Recording{All: []recording.Output{{Command: "dump-flows", Bridge: "br-int"}}}
	add := func(namespaces ...string) {
		for _, namespace := range namespaces {
			node.All = append(node.All, recording.Output{Command: "netns.ip.rule", Namespace: namespace},
				recording.Output{Command: "netns.ip.route", Namespace: namespace})
		}
	}
	add("../x", ".", "..", "a/b", "nul\x00", strings.Repeat("n", 181), strings.Repeat("\xff", 61),
		strings.Repeat("n", 180))
	for i := range 5000 {
		add(fmt.Sprint("ns", i))
	}
	node.LimitNamespaces()
	expect.Equal(t, len(node.All), 1+2*4096)
	expect.Equal(t, node.All[1].Namespace, strings.Repeat("n", 180))
	expect.Equal(t, len(node.Lost), 2, node.Lost)
	expect.Equal(t, strings.HasPrefix(node.Lost[0], "outputs of 7 network namespaces whose names can't be"), true,
		node.Lost)
	expect.Equal(t, node.Lost[1], "outputs of 5001 network namespaces are there: only those of the first 4096 are taken")
	lost := len(node.Lost)
	node.LimitNamespaces()
	expect.Equal(t, len(node.Lost), lost)
}
