package captures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Node is the capture of a node that has OVN, unpacked. Its fields are paths of files.
type Node struct {
	Name        string // of the folder in testdata
	OVS, NB, SB string // databases
	Flows       string // of br-int, as OpenFlow 1.5
	Packets     string // bridge|options|flow
	Traces      string // the folder of the traces that the live switch printed
}

// Nodes returns the captures of nodes with OVN in testdata/captures.
func Nodes(tb testing.TB) []Node {
	tb.Helper()
	var nodes []Node
	for _, packets := range glob(tb, "testdata/captures/*/packets") {
		nodes = append(nodes, NodeIn(tb, filepath.Dir(packets)))
	}
	return nodes
}

// Report returns the sos report of a capture, by its folder below testdata.
func Report(tb testing.TB, folder string) string {
	tb.Helper()
	found := glob(tb, filepath.Join("testdata", folder, "sosreport-*.tar.xz"))
	if len(found) != 1 {
		tb.Fatalf("%s has the reports %q, not one", folder, found)
	}
	return found[0]
}

// Reports returns the sos reports of all nodes in testdata/captures.
func Reports(tb testing.TB) []string {
	tb.Helper()
	return glob(tb, "testdata/captures/*/sosreport-*.tar.xz")
}

// NodeIn returns the capture in a folder, as in testdata/captures or as the lab writes it.
func NodeIn(tb testing.TB, folder string) Node {
	tb.Helper()
	report := Unpack(tb, one(tb, filepath.Join(folder, "sosreport-*.tar.xz")))
	node := Node{Name: filepath.Base(folder), Packets: filepath.Join(folder, "packets"), Traces: filepath.Join(folder, "live"),
		OVS: named(tb, report, "conf.db"), NB: named(tb, report, "ovnnb_db.db"), SB: named(tb, report, "ovnsb_db.db"),
		Flows: named(tb, report, "ovs-ofctl_-O_OpenFlow15_dump-flows_br-int")}
	if !exists(node.Traces) {
		node.Traces = filepath.Join(Unpack(tb, filepath.Join(folder, "live-traces.tar.xz")), "live")
	}
	return node
}

func one(tb testing.TB, pattern string) string {
	tb.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		tb.Fatalf("%s: %v %v", pattern, found, err)
	}
	return found[0]
}

// named returns the file of a name below a folder.
func named(tb testing.TB, folder, name string) (found string) {
	tb.Helper()
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.EqualFold(entry.Name(), name) {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		tb.Fatalf("no %s in %s: %v", name, folder, err)
	}
	return found
}
