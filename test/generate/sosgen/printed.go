package sosgen

import (
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/daemons/ovs"
)

// PrintedCentral returns the outputs with which sos's plugin ovn_central prints the node's OVN
// databases, from real servers: every table but Logical_Flow, and the logical flows.
func (n *Node) PrintedCentral(tb testing.TB) Tree {
	tb.Helper()
	tree := Tree{}
	for database, tool := range map[string]string{NB: "ovn-nbctl", SB: "ovn-sbctl"} {
		path := filepath.Join(ovs.Dir(tb), "central.db")
		if err := (Tree{"central.db": {Body: n.Databases[database]}}).Write(filepath.Dir(path)); err != nil {
			tb.Fatal(err)
		}
		server := ovs.Serve(tb, path)
		printed := func(words ...string) {
			name := strings.Join(append([]string{"sos_commands/ovn_central/" + tool, "--no-leader-only"}, words...), "_")
			tree.put(name, []byte(server.Run(append([]string{tool, "--db=" + server.Remote}, words...)...)))
		}
		tables, err := file.Tables(tb.Context(), path)
		if err != nil {
			tb.Fatal(err)
		}
		for _, table := range tables {
			if table != "Logical_Flow" {
				printed("list", table)
			}
		}
		if database == SB {
			printed("lflow-list")
		}
		server.Stop()
	}
	return tree
}
