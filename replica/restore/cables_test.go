package restore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// link connects a port with one of another node.
func (n *liveNode) link(port string, other *liveNode, far string) {
	n.t.Helper()
	socket := filepath.Join(n.dir, port+".cable")
	n.vsctl("set", "Interface", port, "options:pstream=punix:"+socket)
	other.vsctl("set", "Interface", far, "options:stream=unix:"+socket)
}

// wait waits until the output of an ovs-appctl command matches a pattern.
func (n *liveNode) wait(pattern string, args ...string) {
	n.t.Helper()
	n.waitTool(pattern, append([]string{"ovs-appctl"}, args...)...)
}

// waitTool waits until the output of any tool matches a pattern.
func (n *liveNode) waitTool(pattern string, argv ...string) {
	n.t.Helper()
	wanted := regexp.MustCompile(pattern)
	ovs.Await(n.t, fmt.Sprintf("output of %q that matches %s", argv, pattern),
		func() bool { return wanted.MatchString(n.run(argv...)) },
		func() string { return n.run(argv...) })
}

// shown returns the output of an ovs-appctl command with its sections sorted, and
// without values that differ between two starts of one node.
func (n *liveNode) shown(args ...string) string {
	n.t.Helper()
	text := n.appctl(args...)
	for pattern, by := range map[string]string{`(next rebalance|expires in).*`: "$1",
		`(Recirc-ID : |bond-id: )\d+`: "${1}N", `(gre_sys) \(\d+\)`: "$1 (N)",
		`active member mac: [0-9a-f:]+`: "active member mac: M"} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
	}
	sections := strings.Split("\n"+strings.TrimSpace(text), "\n---- ")
	for i := range sections {
		sections[i] = strings.TrimSpace(sections[i])
	}
	sort.Strings(sections)
	return strings.Join(sections, "\n\n---- ")
}

// sameShown checks that a command prints the same on the replica as on the node.
func (r *replayed) sameShown(node *liveNode, args ...string) {
	r.t.Helper()
	if want, have := node.shown(args...), r.shown(args...); want != have {
		r.t.Errorf("%s prints on the node:\n%s\n\nin the replica:\n%s", args, want, have)
	}
}

// needs checks that traces equal the node's with a step, and differ without it.
func needs(t *testing.T, node *liveNode, r, bare *replayed, packets []string) {
	t.Helper()
	differ := differences(node, r.liveNode, packets...)
	if len(differ) > 0 {
		t.Errorf("%d of %d traces differ:\n%s", len(differ), len(packets), strings.Join(differ, "\n"))
	}
	if !anyDiffers(node, bare.liveNode, packets...) {
		t.Error("without the step no trace differs: it is not tested")
	}
	t.Logf("equal traces: %d of %d", len(packets)-len(differ), len(packets))
}

// write adds a command's output to an sos report.
func write(t *testing.T, sos, output, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(sos, "sos_commands/openvswitch", output), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
