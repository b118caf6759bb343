package whatif

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/image"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
)

// nextRelease makes an image of this machine's programs that has the next version, and returns the version. alter
// changes its ovn-northd, in which each text has to keep its length.
func nextRelease(t *testing.T, alter func(path string, program []byte) []byte) string {
	t.Helper()
	fidelity.NeedScratch(t)
	host, _ := engines.HostImage(t)
	root := filepath.Join(ovs.Dir(t), "root")
	if err := os.CopyFS(root, os.DirFS(host.Root)); err != nil {
		t.Fatal(err)
	}
	next := []byte(host.OVN)
	next[len(next)-1]++
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), "ovn-") {
			return err
		}
		program, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		program = bytes.ReplaceAll(program, []byte(host.OVN), next)
		if entry.Name() == "ovn-northd" {
			program = alter(path, program)
		}
		return os.WriteFile(path, program, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	added, err := store.Add(t.Context(), "dir:"+root, image.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return added.Versions().OVN
}

// unhinted returns a copy of an SB database whose logical flows do not say which northbound rows they are of, as if
// they had been of others when they were made.
func unhinted(t *testing.T, sb string) string {
	t.Helper()
	path := filepath.Join(ovs.Dir(t), "sb.db")
	if _, _, err := file.Standalone(t.Context(), sb, path); err != nil {
		t.Fatal(err)
	}
	ovs.Run(t, "ovsdb-tool", "transact", path,
		`["OVN_Southbound", {"op": "mutate", "table": "Logical_Flow", "where": [], "mutations": [["external_ids", "delete", ["set", ["stage-hint"]]]]}]`)
	return path
}

// TestAnUpgradeWithinASeriesNamesItsFlows rehearses an upgrade to an ovn-northd that gives another TTL to the messages
// about expired packets, which reach never asks for, and says something else about an address that it refuses. No
// other flow differs, and no row gains or loses its flows.
func TestAnUpgradeWithinASeriesNamesItsFlows(t *testing.T) {
	to := nextRelease(t, func(_ string, program []byte) []byte {
		const original, other = "ip.ttl = 254; outport", "ip.ttl = 253; outport"
		if !bytes.Contains(program, []byte(original)) {
			t.Skipf("this ovn-northd has no %q", original)
		}
		program = bytes.ReplaceAll(program, []byte("No MAC address found"), []byte("MAC address is wrong"))
		return bytes.ReplaceAll(program, []byte(original), []byte(other))
	})
	deployment := recordedSet(t, "openstack", "compute1")
	deployment.SB = unhinted(t, deployment.SB)
	deployment.NB = planted(t, deployment.NB, "lsp-add", blue, "odd", "--", "set", "Logical_Switch_Port", "odd",
		"addresses=wrong")
	result := rehearsed(t, Upgrade{Deployment: deployment, To: versions.Pair{OVN: to}})
	for text, list := range map[string][]Refusal{"MAC address is wrong": result.Refused,
		"No MAC address found": result.Accepted} {
		if len(list) != 1 || list[0].Program != "ovn-northd" || !strings.Contains(list[0].Problem, text) {
			t.Errorf("%+v", list)
		}
	}
	if len(result.Rows)+len(result.Pairs.Changed) > 0 || len(result.Flows) == 0 {
		t.Errorf("refused %+v, rows %+v, changed %q, flows %+v", result.Refused, result.Rows, changed(result.Pairs.Changed),
			result.Flows)
	}
	for _, node := range result.Flows {
		if len(node.Added)+len(node.Removed) > 0 || node.Same < 1000 {
			t.Errorf("%s: added %+v, removed %+v, %d are the same", node.Node, node.Added, node.Removed, node.Same)
		}
		for _, difference := range node.Changed {
			if difference.Northbound != "Logical_Router_Port" ||
				!strings.Contains(difference.What, "stage lr_in_ip_input of router") {
				t.Errorf("%s: %s", node.Node, difference.What)
			}
		}
	}
}

// TestAnUpgradeToProgramsThatCrashSaysSo rehearses an upgrade to a release whose ovn-northd is killed by a signal as
// soon as it has started.
func TestAnUpgradeToProgramsThatCrashSaysSo(t *testing.T) {
	const crashing = `#!/bin/sh
for option; do case $option in --pidfile=*) file=${option#*=};; esac; done
/usr/bin/northd "$@" && kill -SEGV $(cat "$file")
`
	to := nextRelease(t, func(path string, program []byte) []byte {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "northd"), program, 0o755); err != nil {
			t.Fatal(err)
		}
		return []byte(crashing)
	})
	result := rehearsed(t, Upgrade{Deployment: recordedSet(t, "openstack", "compute1"), To: versions.Pair{OVN: to}})
	if len(result.Ended) != 1 || !strings.Contains(result.Ended[0], "OVN "+to+": ovn-northd has ended") ||
		!result.Differs() {
		t.Errorf("ended: %q", result.Ended)
	}
	if len(result.Refused)+len(result.Rows)+len(result.Flows)+len(result.Pairs.Changed) > 0 {
		t.Errorf("what is not known is reported: %+v", result.Effect)
	}
}
