package sosgen

import (
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/test/check/sweep"
)

// TestCollectionsWithoutSos collects what users bring without sos: output of
// ovs-save, dumps in files, database files.
func TestCollectionsWithoutSos(t *testing.T) {
	for _, topology := range []string{"openstack", "ml2-ovs"} {
		t.Run(topology, func(t *testing.T) {
			n := recorded(t, topology)
			saved, err := n.Saved()
			if err != nil {
				t.Fatal(err)
			}
			inline, err := n.SavedInline()
			if err != nil {
				t.Fatal(err)
			}
			all := topology == "ml2-ovs" || sweep.Whole() // its bridges have protocols of their own, which ovs-save and the dumps go by
			t.Run("ovs-save", func(t *testing.T) { checkByHand(t, n, bySave, write(t, saved.With(n.Files()))) })
			t.Run("loose dumps", func(t *testing.T) {
				dumps := n.Loose("OpenFlow15", "dump-flows", "dump-groups", "dump-meters", "dump-tlv-map")
				checkByHand(t, n, func(b Bridge) supply {
					s := supply{flows: "OpenFlow15", groups: "OpenFlow15", meters: true, tlv: true, exact: true}
					if len(b.Protocols) > 0 && b.Protocols[len(b.Protocols)-1] < "OpenFlow15" {
						s = supply{} // the dumps hold an error message
					}
					return s
				}, write(t, dumps.With(n.Files())))
			})
			if !all {
				return // OVN has the entries and groups that the dumps above hold, and no other files
			}
			t.Run("loose dumps of OpenFlow 1.0", func(t *testing.T) {
				checkByHand(t, n, func(b Bridge) supply {
					s := supply{flows: "OpenFlow10"}
					if len(b.Protocols) > 0 && b.Protocols[0] != "OpenFlow10" {
						s.flows = ""
					}
					return s
				}, write(t, n.Loose("", "dump-flows").With(n.Files())))
			})
			t.Run("ovs-save beside databases", func(t *testing.T) {
				checkByHand(t, n, bySave, write(t, saved.Under("ovs-save.Xy12").With(n.Files())))
			})
			t.Run("ovs-save of 2.8", func(t *testing.T) { checkByHand(t, n, bySave, write(t, inline.With(n.Files()))) })
			t.Run("databases alone", func(t *testing.T) {
				checkByHand(t, n, func(Bridge) supply { return supply{} }, write(t, n.Files()))
			})
		})
	}
}

// bySave returns what ovs-save writes of a bridge: everything except meters, in the
// bridge's highest version, or in 1.4 if the database sets no versions.
func bySave(b Bridge) supply {
	version := "OpenFlow14"
	if k := len(b.Protocols); k > 0 {
		version = b.Protocols[k-1]
	}
	return supply{flows: version, groups: version, tlv: true}
}

func checkByHand(t *testing.T, n *Node, of func(Bridge) supply, path string) {
	t.Parallel()
	r := replay(t, path)
	if r.collected.code != 0 || r.started.code != 0 {
		t.Errorf("collect %d: %s\nstart %d: %s", r.collected.code, r.collected.err, r.started.code, r.started.err)
	}
	checkBridges(t, n, r, of)
	for _, where := range []string{path, r.Workdir.Path(), "."} {
		if _, err := os.Stat(filepath.Join(where, "ran")); err == nil {
			t.Errorf("a collected script was executed in %s", where)
		}
	}
	if sweep.Whole() {
		r.log(t, n) // figures for people: no packet decides here
	}
}
