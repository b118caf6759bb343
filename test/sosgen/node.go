// Package sosgen writes what one live node of the lab said in the shape of
// every collection that people bring: sos reports of every era, must-gathers,
// output of ovs-save, loose dumps, databases cleaned, cut, torn or of a cluster.
// Tests stand on it; the program does not use it.
package sosgen

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mholt/archives"
)

// Node is what `lab run` recorded of a live node.
type Node struct {
	Dir       string // the recording: packets, live/, truth/, raw/
	Host      string
	Bridges   []Bridge          // as list-br lists them, fake ones included
	Databases map[string][]byte // files as on the node's disk, by database name
	version   string            // of Open vSwitch
	protocols map[string][]string
	outputs   map[string][]byte // by command, as sos 4.12 or the lab ran it
	spell     *strings.Replacer // other words for what the recording says; nil for none
	recorded  map[string]string // a bridge's name in the recording, where it has another here
}

// Bridge is one line of list-br.
type Bridge struct {
	Name      string
	Fake      bool     // a VLAN of another bridge: it has no OpenFlow of its own
	Protocols []string // set in the database; none are the default ones
}

// OVS, NB and SB are the names of the databases.
const (
	OVS = "Open_vSwitch"
	NB  = "OVN_Northbound"
	SB  = "OVN_Southbound"
)

// Load reads the recording in dir.
func Load(dir string) (*Node, error) {
	found, err := filepath.Glob(filepath.Join(dir, "sosreport-*.tar.xz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s: %d sos reports, not one (%w)", dir, len(found), err)
	}
	report, err := readTarXz(found[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	n := &Node{Dir: dir, outputs: map[string][]byte{}, Databases: map[string][]byte{}}
	if err := n.takeOutputs(report); err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	n.Host, _, _ = strings.Cut(strings.TrimPrefix(filepath.Base(found[0]), "sosreport-"), "-20")
	n.takeDatabases(report)
	if err := n.takeRaw(); err != nil {
		return nil, err
	}
	return n, n.takeBridges()
}

// takeOutputs reads what each command printed, by the manifest.
func (n *Node) takeOutputs(report Tree) error {
	var m manifest
	if err := json.Unmarshal(report["sos_reports/manifest.json"].Body, &m); err != nil {
		return err
	}
	for _, plugin := range []string{"ovn_host", "openvswitch"} {
		for _, c := range m.plugin(plugin).Commands {
			n.outputs[c.Exec] = report[c.Filepath].Body
		}
	}
	return nil
}

func (n *Node) takeDatabases(report Tree) {
	for name, rel := range map[string]string{OVS: "var/lib/openvswitch/conf.db", NB: "var/lib/ovn/etc/ovnnb_db.db", SB: "var/lib/ovn/etc/ovnsb_db.db"} {
		if f, there := report[rel]; there {
			n.Databases[name] = f.Body
		}
	}
}

func (n *Node) takeRaw() error {
	dump, err := os.ReadFile(n.path("raw/ovsdb-client_-f_list_dump"))
	if err != nil {
		return err
	}
	n.outputs["ovsdb-client -f list dump"] = dump
	protocols, err := os.ReadFile(n.path("raw/protocols"))
	if err != nil {
		return err
	}
	n.protocols = map[string][]string{}
	for line := range strings.Lines(string(protocols)) {
		name, set, _ := strings.Cut(strings.TrimSpace(line), " ")
		n.protocols[name] = strings.FieldsFunc(set, func(r rune) bool { return strings.ContainsRune("[], ", r) })
	}
	return nil
}

func (n *Node) takeBridges() error {
	for name := range strings.Lines(string(n.outputs["ovs-vsctl -t 5 list-br"])) {
		name = strings.TrimSpace(name)
		protocols, real := n.protocols[name]
		n.Bridges = append(n.Bridges, Bridge{Name: name, Fake: !real, Protocols: protocols})
	}
	if len(n.Bridges) == 0 {
		return errors.New("the recording lists no bridge")
	}
	_, n.version, _ = strings.Cut(strings.SplitN(string(n.outputs["ovs-ofctl -t 5 --version"]), "\n", 2)[0], ") ")
	return nil
}

func (n *Node) path(rel string) string { return filepath.Join(n.Dir, filepath.FromSlash(rel)) }

// HasOVN tells whether the node is one of an OVN.
func (n *Node) HasOVN() bool { return n.Databases[SB] != nil }

// Rows is `ovsdb-client -f json dump` of a database of the live node.
func (n *Node) Rows(database string) ([]byte, error) { return n.read("raw/" + database + ".json") }

// Backup is a database as `ovsdb-client backup` wrote it.
func (n *Node) Backup(database string) ([]byte, error) {
	file, err := os.ReadFile(n.path("raw/" + database + ".backup"))
	return Rewritten(file, n.respelled), err
}

// Truth is what the live bridge held: flows, groups, meters or tlv.
func (n *Node) Truth(bridge, what string) ([]byte, error) {
	if name, other := n.recorded[bridge]; other {
		bridge = name
	}
	return n.read("truth/" + bridge + "." + what)
}

// Packets is the file of packets that were traced.
func (n *Node) Packets() string { return n.path("packets") }

// Live is the folder of the live traces.
func (n *Node) Live() string { return n.path("live") }

func (n *Node) read(rel string) ([]byte, error) {
	text, err := os.ReadFile(n.path(rel))
	return n.respelled(text), err
}

func (n *Node) respelled(text []byte) []byte {
	if n.spell == nil {
		return text
	}
	return []byte(n.spell.Replace(string(text)))
}

// Respelled is another node that is the same but for its name and other words,
// given in pairs as to strings.NewReplacer: a second one for a cluster of the
// lab's one, or one whose bridges have other names.
func (n *Node) Respelled(host string, words ...string) *Node {
	other := *n
	other.spell = strings.NewReplacer(append(words, n.Host, host)...)
	other.Host = host
	other.outputs, other.Databases = map[string][]byte{}, map[string][]byte{}
	for command, text := range n.outputs {
		other.outputs[other.spell.Replace(command)] = other.respelled(text)
	}
	for name, file := range n.Databases {
		other.Databases[name] = Rewritten(file, other.respelled)
	}
	other.Bridges, other.recorded = nil, map[string]string{}
	for _, b := range n.Bridges {
		recorded := b.Name
		b.Name = other.spell.Replace(recorded)
		other.recorded[b.Name] = recorded
		other.Bridges = append(other.Bridges, b)
	}
	return &other
}

// readTarXz reads an archive, without its top folder.
func readTarXz(file string) (Tree, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := archives.Xz{}.OpenReader(f)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	tree := Tree{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return tree, nil
		}
		if err != nil {
			return nil, err
		}
		_, rel, _ := strings.Cut(path.Clean(h.Name), "/")
		switch h.Typeflag {
		case tar.TypeReg:
			body, err := io.ReadAll(r)
			if err != nil {
				return nil, err
			}
			tree[rel] = File{Body: body}
		case tar.TypeSymlink:
			tree[rel] = File{Link: h.Linkname}
		}
	}
}
