package sosgen

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Saved returns the output of ovs-save 2.9 and later: its script, named
// do_restore.sh, and the dumps that the script names.
func (n *Node) Saved() (Tree, error) {
	tree := Tree{}
	dumps, err := filepath.Glob(n.path("raw/save/ovs-save.*/*.dump"))
	if err != nil {
		return nil, err
	}
	for _, file := range dumps {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		tree.put(filepath.Base(file), body)
	}
	script, err := os.ReadFile(n.path("raw/save/do_restore.sh"))
	if err != nil || len(dumps) == 0 {
		return nil, fmt.Errorf("ovs-save wrote %d dumps (%w)", len(dumps), err)
	}
	tree.put("do_restore.sh", []byte(strings.ReplaceAll(string(script), path.Dir(filepath.Dir(dumps[0])), "/tmp")))
	return tree, nil
}

// SavedInline returns the output of ovs-save 2.8 and earlier: one script that holds
// the dumps as here-documents. Running the script would make a file "ran".
func (n *Node) SavedInline() (Tree, error) {
	saved, err := n.Saved()
	if err != nil {
		return nil, err
	}
	var script strings.Builder
	script.WriteString("touch ran\n")
	for _, b := range n.Bridges {
		if b.Fake {
			continue
		}
		version := "OpenFlow14"
		if k := len(b.Protocols); k > 0 {
			version = b.Protocols[k-1]
		}
		bundle := ""
		if version >= "OpenFlow14" {
			bundle = "--bundle "
		}
		fmt.Fprintf(&script, "ovs-ofctl -O %s add-tlv-map %s '%s'\n", version, b.Name, mapping(string(saved["do_restore.sh"].Body), b.Name))
		for _, d := range []struct{ verb, file string }{{"add-groups", ".groups.dump"}, {"add-flows", ".flows.dump"}} {
			fmt.Fprintf(&script, "ovs-ofctl -O %s %s%s %s - << EOF\n%sEOF\n", version, bundle, d.verb, b.Name, saved[b.Name+d.file].Body)
		}
	}
	tree := Tree{}
	tree.put("restore_flows.sh", []byte(script.String()))
	return tree, nil
}

// mapping returns a bridge's TLV map as ovs-save's script has it.
func mapping(script, bridge string) string {
	_, rest, _ := strings.Cut(script, "add-tlv-map "+bridge+" '")
	text, _, _ := strings.Cut(rest, "'")
	return text
}

// Loose returns a folder of dumps as a user makes them by hand, named
// BRIDGE.COMMAND.txt, in an OpenFlow version ("" for no option -O).
func (n *Node) Loose(version string, whats ...string) Tree {
	tree := Tree{}
	for _, b := range n.Bridges {
		for _, what := range whats {
			command := "ovs-ofctl " + what + " " + b.Name
			if version != "" {
				command = "ovs-ofctl -O " + version + " " + what + " " + b.Name
			}
			if text, asked := n.outputs[command]; asked && !b.Fake {
				tree.put(b.Name+"."+what+".txt", text)
			}
		}
	}
	return tree
}

// Files returns the node's databases under their usual names.
func (n *Node) Files() Tree {
	tree := Tree{}
	for name, file := range map[string]string{OVS: "conf.db", NB: "ovnnb_db.db", SB: "ovnsb_db.db"} {
		if body := n.Databases[name]; body != nil {
			tree.put(file, body)
		}
	}
	return tree
}
