// Package sosgen generates, from the recording of one live node of the lab, the
// collections that users bring: sos reports of every era, must-gathers, output of
// ovs-save, dumps in files, and databases that are cleaned, cut, torn or clustered.
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

// Node is the recording of a live node by `lab run`.
type Node struct {
	Dir       string // the recording: packets, live/, truth/, raw/
	Host      string
	Bridges   []Bridge          // as list-br lists them, fake ones included
	Databases map[string][]byte // files as on the node's disk, by database name
	// ClientLogs are logs of clients of libovsdb, by their names; nil for none.
	ClientLogs map[string][]byte
	version    string // of Open vSwitch
	protocols  map[string][]string
	outputs    map[string][]byte // by command line, as sos 4.12 or the lab ran it
	replacer   *strings.Replacer // replaces names in the recording; nil for no changes
	recorded   map[string]string // names of bridges in the recording, by their replaced names
}

// Bridge is one line of list-br.
type Bridge struct {
	Name      string
	Fake      bool     // a VLAN of another bridge, without OpenFlow tables of its own
	Protocols []string // as set in the database; empty for the defaults
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
	if n.HasOVN() {
		n.ClientLogs = map[string][]byte{"libovsdb.log": []byte("2026/11/22 14:57:26 client.go:832: \"level\"=4 \"msg\"=\"transacting operations\" of " + n.Host + "\n")}
	}
	return n, n.takeBridges()
}

// takeOutputs reads the output of each command that the manifest lists.
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

// HasOVN reports whether the node has OVN databases.
func (n *Node) HasOVN() bool { return n.Databases[SB] != nil }

// Rows returns the output of `ovsdb-client -f json dump` for a live database.
func (n *Node) Rows(database string) ([]byte, error) { return n.read("raw/" + database + ".json") }

// Backup returns the output of `ovsdb-client backup` for a live database.
func (n *Node) Backup(database string) ([]byte, error) {
	file, err := os.ReadFile(n.path("raw/" + database + ".backup"))
	return Rewritten(file, n.replaced), err
}

// Truth returns a dump of the live bridge: flows, groups, meters or tlv.
func (n *Node) Truth(bridge, what string) ([]byte, error) {
	if name, other := n.recorded[bridge]; other {
		bridge = name
	}
	return n.read("truth/" + bridge + "." + what)
}

// Packets returns the path of the list of traced packets.
func (n *Node) Packets() string { return n.path("packets") }

// Live returns the folder of the live traces.
func (n *Node) Live() string { return n.path("live") }

func (n *Node) read(rel string) ([]byte, error) {
	text, err := os.ReadFile(n.path(rel))
	return n.replaced(text), err
}

func (n *Node) replaced(text []byte) []byte {
	if n.replacer == nil {
		return text
	}
	return []byte(n.replacer.Replace(string(text)))
}

// Renamed returns a copy of the node with another host name and with other words
// replaced, in pairs as for strings.NewReplacer: a second node of a cluster, or a node
// whose bridges have other names.
func (n *Node) Renamed(host string, words ...string) *Node {
	other := *n
	other.replacer = strings.NewReplacer(append(words, n.Host, host)...)
	other.Host = host
	other.outputs, other.Databases = map[string][]byte{}, map[string][]byte{}
	for command, text := range n.outputs {
		other.outputs[other.replacer.Replace(command)] = other.replaced(text)
	}
	for name, file := range n.Databases {
		other.Databases[name] = Rewritten(file, other.replaced)
	}
	other.ClientLogs = map[string][]byte{}
	for name, text := range n.ClientLogs {
		other.ClientLogs[name] = other.replaced(text)
	}
	other.Bridges, other.recorded = nil, map[string]string{}
	for _, b := range n.Bridges {
		recorded := b.Name
		b.Name = other.replacer.Replace(recorded)
		other.recorded[b.Name] = recorded
		other.Bridges = append(other.Bridges, b)
	}
	return &other
}

// readTarXz reads the files of an archive, without the top folder in their paths.
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
