package sosgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Era is a range of sos versions whose reports hold the same files.
type Era struct {
	Name    string // the range of versions
	Version string // the version that wrote the report

	manifest   bool
	waits      bool     // list and list-br have the option -t 5
	listBr     []string // commands that list the bridges
	lists      []string // tables
	newest     string   // the highest OpenFlow version of the plugin
	defaults   bool     // dumps bridges without set protocols in every version
	tlv        bool
	groups     bool // dump-groups without -O
	meters     bool
	files      bool // conf.db; else ovsdb-client dump
	datapath   bool // dpctl, bridge/dump-flows, dp features, mdb: 4.0
	bfd        bool
	askVersion string // the command that prints the version of OVS
	repeated   bool   // for each bridge
	debian     bool   // packages and the path of conf.db are those of Debian
	central    string // folder of the OVN databases
	doca       bool   // the sos of NVIDIA's DOCA: meters of every bridge, and flows with the names of ports

	inNamespaces     []string // the command lines that are run in each named network namespace
	namespaceFolders bool     // the plugin networking has a folder for each
}

// Eras returns the eras of sos 3.8 to 4.12.
func Eras() []Era {
	listBr := []string{"ovs-vsctl -t 5 list-br"}
	lists := []string{"Open_vSwitch", "interface", "bridge"}
	old := Era{lists: []string{"Open_vSwitch"}, newest: "OpenFlow13", central: "var/lib/openvswitch/ovn",
		inNamespaces: []string{"ip address show", "ip route show table all", "iptables-save"}}
	e38, e39 := old, old
	e38.Name, e38.Version = "3.8", "3.8"
	e39.Name, e39.Version = "3.9", "3.9"
	e39.listBr, e39.lists = []string{"ovs-vsctl list-br", "ovs-vsctl -t 5 list-br"}, lists
	e40 := Era{Name: "4.0-4.1", Version: "4.0", manifest: true, waits: true, listBr: listBr, lists: lists, newest: "OpenFlow15", datapath: true, central: "var/lib/openvswitch", debian: true,
		inNamespaces: old.inNamespaces}
	e42 := e40
	e42.inNamespaces = append(e42.inNamespaces, "ip -s -s neigh show", "ip rule list", "ip6tables-save", "conntrack -L -o extended")
	e42.Name, e42.Version, e42.debian = "4.2", "4.2", false
	e43 := e42
	e43.Name, e43.Version, e43.namespaceFolders = "4.3", "4.3", true
	e43.inNamespaces = append([]string{"ip -d address show"}, e42.inNamespaces[1:]...)
	e43.defaults, e43.tlv, e43.files, e43.askVersion, e43.central = true, true, true, "ovs-ofctl -t 5 --version", "var/lib/ovn/etc"
	e44 := e43
	e44.Name, e44.Version, e44.groups, e44.central = "4.4-4.7.1", "4.7.1", true, "var/lib/ovn"
	e44.inNamespaces = []string{"ip -d address show", "ip route show table all", "ip -s -s neigh show", "ip -4 rule list", "ip -6 rule list", "sysctl -a",
		"iptables-save", "ip6tables-save", "conntrack -L -o extended"}
	e472 := e44
	e472.inNamespaces = slices.Clone(e44.inNamespaces)
	for i := range e472.inNamespaces[:6] {
		e472.inNamespaces[i] = " " + e472.inNamespaces[i] // sos writes two blanks since 4.8.1
	}
	e472.Name, e472.Version = "4.7.2-4.8", "4.8.2"
	e472.defaults, e472.askVersion, e472.repeated, e472.debian = false, "ovs-vsctl -t 5 --version", true, true
	e49 := e472
	e49.Name, e49.Version, e49.meters, e49.debian, e49.central = "4.9.0-4.11.0", "4.10.2", true, false, "var/lib/ovn-ic/etc"
	e411 := e49
	e411.Name, e411.Version = "4.11.1-4.12.0", "4.12.0"
	e411.lists = append(e411.lists, "controller", "datapath", "ipfix", "manager", "mirror", "netflow", "port", "qos", "queue", "sflow")
	e411.defaults, e411.bfd, e411.askVersion = true, true, "ovs-ofctl -t 5 --version"
	doca := e472
	doca.Name, doca.Version, doca.doca = "DOCA's 4.9.0", "4.9.0", true
	return []Era{e38, e39, e40, e42, e43, e44, e472, e49, doca, e411}
}

// The following methods report what a report of the era can hold.
func (e Era) HasDatabase() bool { return e.files }
func (e Era) HasManifest() bool { return e.manifest }

// HasClientLogs reports whether sos copies the logs of clients of libovsdb: its plugin
// openshift_ovn does so beside the databases of OVN interconnect.
func (e Era) HasClientLogs() bool { return e.central == "var/lib/ovn-ic/etc" }

// Versions returns the OpenFlow versions in which the era's plugin dumps a bridge, not
// counting the dump without -O.
func (e Era) Versions(b Bridge) []string {
	all := []string{"OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"}
	all = all[:slices.Index(all, e.newest)+1]
	allowed := b.Protocols
	if len(allowed) == 0 && e.defaults {
		return all
	}
	return slices.DeleteFunc(all, func(v string) bool { return !slices.Contains(allowed, v) })
}

// pluginCommand is a command that a plugin runs. A folder of the plugin may follow its name.
type pluginCommand struct{ plugin, command string }

// Report returns the node's sos report of an era.
func (n *Node) Report(e Era) Tree {
	r := &sosReport{node: n, tree: Tree{}}
	r.tree.putText("version.txt", "sosreport: %s\n", e.Version)
	r.tree.putText("sos_commands/host/hostname", "%s\n", n.Host)
	r.m.Version = e.Version
	for _, c := range n.commands(e) {
		r.add(c, n.output(e, c.command))
	}
	n.packages(e, r)
	n.namespaces(e, r)
	n.copies(e, r)
	n.logs(e, r)
	r.tree.putMachine(n.Machine())
	if e.manifest {
		text, err := json.Marshal(&r.m)
		must(err)
		r.tree.put("sos_reports/manifest.json", text)
	}
	return r.tree
}

// sosReport is a report that is being written.
type sosReport struct {
	node *Node
	tree Tree
	m    manifest
}

// manifest is the part of sos_reports/manifest.json that tests need.
type manifest struct {
	Version    string `json:"version"`
	Components struct {
		Report struct {
			Plugins map[string]*plugin `json:"plugins"`
		} `json:"report"`
	} `json:"components"`
}

type plugin struct {
	Commands []ranCommand `json:"commands"`
	Files    []copied     `json:"files"`
}

type ranCommand struct {
	Exec       string `json:"exec"`
	Filepath   string `json:"filepath"`
	ReturnCode int    `json:"return_code"`
	Truncated  bool   `json:"truncated"`
}

type copied struct {
	Specification string   `json:"specification"`
	Files         []string `json:"files_copied"`
}

func (m *manifest) plugin(name string) *plugin {
	if m.Components.Report.Plugins == nil {
		m.Components.Report.Plugins = map[string]*plugin{}
	}
	p := m.Components.Report.Plugins[name]
	if p == nil {
		p = &plugin{Commands: []ranCommand{}, Files: []copied{}}
		m.Components.Report.Plugins[name] = p
	}
	return p
}

func (r *sosReport) add(c pluginCommand, output []byte) {
	name := path.Join("sos_commands", c.plugin, mangle(c.command))
	file := name
	for i := 1; ; i++ {
		if _, taken := r.tree[file]; !taken {
			break
		}
		file = name + "." + strconv.Itoa(i)
	}
	r.tree.put(file, output)
	plugin, _, _ := strings.Cut(c.plugin, "/")
	p := r.m.plugin(plugin)
	p.Commands = append(p.Commands, ranCommand{Exec: c.command, Filepath: file})
}

var (
	binaries  = regexp.MustCompile(`^/(usr/)?s?bin/`)
	unnamable = regexp.MustCompile(`[^\pL\pN_\-./]+`)
)

// mangle returns sos's file name for the output of a command.
func mangle(command string) string {
	name := unnamable.ReplaceAllString(binaries.ReplaceAllString(command, ""), "_")
	name = strings.Trim(strings.ReplaceAll(name, "/", "."), " ._-")
	return name[:min(len(name), 255)]
}

// commands returns the commands that the era's plugins run, in their order.
func (n *Node) commands(e Era) []pluginCommand {
	var all []pluginCommand
	ovs := func(format string, a ...any) {
		all = append(all, pluginCommand{"openvswitch", fmt.Sprintf(format, a...)})
	}
	wait := ""
	if e.waits {
		wait = "-t 5 "
	}
	ovs("ovs-vsctl -t 5 show")
	if !e.files {
		ovs("ovsdb-client -f list dump")
	}
	for _, what := range []string{"bond/list", "bond/show", "lacp/show", "coverage/show", "ovs/route/show", "tnl/arp/show", "tnl/ports/show -v", "upcall/show"} {
		ovs("ovs-appctl %s", what)
	}
	for _, table := range e.lists {
		ovs("ovs-vsctl %slist %s", wait, table)
	}
	if e.bfd {
		ovs("ovs-appctl bfd/show")
	}
	if e.datapath {
		ovs("ovs-appctl ofproto/list-tunnels")
		ovs("ovs-appctl dpctl/dump-dps")
		for _, what := range []string{"show -s", "dump-flows -m", "dump-conntrack -m", "ct-stats-show -m"} {
			ovs("ovs-appctl dpctl/%s system@ovs-system", what)
		}
	}
	for _, c := range e.listBr {
		ovs("%s", c)
	}
	for i, b := range n.Bridges {
		if e.askVersion != "" && (i == 0 || e.repeated) {
			ovs("%s", e.askVersion)
		}
		n.bridgeCommands(e, b, ovs)
	}
	if n.HasOVN() {
		all = append(all, pluginCommand{"ovn_host", "ovs-ofctl -O OpenFlow13 dump-flows br-int"}, pluginCommand{"ovn_host", "ovs-vsctl list-br"})
	}
	return all
}

func (n *Node) bridgeCommands(e Era, b Bridge, ovs func(string, ...any)) {
	if e.datapath {
		for _, what := range []string{"bridge/dump-flows --offload-stats", "dpif/show-dp-features", "mdb/show"} {
			ovs("ovs-appctl %s %s", what, b.Name)
		}
	}
	ovs("ovs-appctl fdb/show %s", b.Name)
	for _, what := range []string{"dump-flows", "dump-ports-desc", "dump-ports", "queue-get-config", "queue-stats", "show"} {
		ovs("ovs-ofctl %s %s", what, b.Name)
	}
	if e.groups {
		ovs("ovs-ofctl dump-groups %s", b.Name)
	}
	if e.doca {
		ovs("ovs-ofctl dump-flows --names %s", b.Name)
		ovs("ovs-ofctl -O OpenFlow13 meter-stats %s", b.Name)
		ovs("ovs-ofctl -O OpenFlow13 dump-meters %s", b.Name)
	}
	for _, version := range e.Versions(b) {
		if b.Fake {
			break // its row has no protocols
		}
		what := []string{"show", "dump-groups", "dump-group-stats", "dump-flows"}
		if e.tlv {
			what = append(what, "dump-tlv-map")
		}
		if e.meters {
			what = append(what, "dump-meters", "meter-stats")
		}
		for _, w := range append(what, "dump-ports-desc") {
			ovs("ovs-ofctl -O %s %s %s", version, w, b.Name)
		}
	}
}

// output returns the recorded output of a command, also of commands of an older sos.
func (n *Node) output(e Era, c string) []byte {
	if out, asked := n.outputs[c]; asked {
		return out
	}
	if out, asked := n.outputs[strings.Replace(c, "ovs-vsctl list", "ovs-vsctl -t 5 list", 1)]; asked {
		return out
	}
	if plain := strings.Replace(c, " --names", "", 1); plain != c {
		return n.named(plain)
	}
	if c == "ovs-vsctl -t 5 --version" {
		return fmt.Appendf(nil, "ovs-vsctl (Open vSwitch) %s\nDB Schema 8.3.1\n", n.version)
	}
	return []byte("bash: " + c + ": not recorded\n")
}

// portName matches the number and the name of a port in the output of ovs-ofctl show.
var portName = regexp.MustCompile(`(?m)^ ([0-9]+)\(([^)]+)\): addr:`)

// named returns the recorded output of dump-flows as --names prints it: without its header, and with
// the names of ports in matches and outputs.
func (n *Node) named(c string) []byte {
	_, bridge, _ := strings.Cut(c, "dump-flows ")
	_, flows, _ := bytes.Cut(n.outputs[c], []byte("\n"))
	for _, port := range portName.FindAllSubmatch(n.outputs["ovs-ofctl show "+bridge], -1) {
		number := regexp.MustCompile(`\b(in_port=|output:)` + string(port[1]) + `\b`)
		flows = number.ReplaceAll(flows, slices.Concat([]byte("${1}"), port[2]))
	}
	return flows
}

// packages adds the list of installed packages, which holds the versions.
func (n *Node) packages(e Era, r *sosReport) {
	if e.debian {
		r.tree.putText("sos_commands/dpkg/dpkg_-l", "||/ Name Version Architecture Description\nii  openvswitch-switch  %s-2  amd64  Open vSwitch\nii  ovn-common  23.03.1-1  amd64  OVN\n", n.version)
		return
	}
	major := n.version[:strings.LastIndexByte(n.version, '.')]
	r.tree.putText("sos_commands/rpm/package-data", "openvswitch%[1]s-%[2]s-10.el9.x86_64\tMon Jan  5 10:00:00 2026\t1\t-\t-\novn23.03-23.03.1-7.el9.x86_64\tMon Jan  5 10:00:00 2026\t1\t-\t-\n", major, n.version)
	r.tree["installed-rpms"] = File{Link: "sos_commands/rpm/package-data"}
}

// copies adds the files that the era's plugins copy.
func (n *Node) copies(e Era, r *sosReport) {
	if e.files && e.debian {
		r.tree.put("var/lib/openvswitch/conf.db", n.Databases[OVS])
		r.tree["etc/openvswitch/conf.db"] = File{Link: "../../var/lib/openvswitch/conf.db"}
		r.copied("openvswitch", "/etc/openvswitch/conf.db", "var/lib/openvswitch/conf.db")
	} else if e.files {
		r.tree.put("etc/openvswitch/conf.db", n.Databases[OVS])
		r.copied("openvswitch", "/etc/openvswitch/conf.db", "etc/openvswitch/conf.db")
	}
	for name, file := range map[string]string{NB: "ovnnb_db.db", SB: "ovnsb_db.db"} {
		if body := n.Databases[name]; body != nil {
			r.tree.put(e.central+"/"+file, body)
			r.copied("ovn_central", "/"+e.central+"/"+file, e.central+"/"+file)
		}
	}
}

// logs adds the logs that the plugin openshift_ovn copies, where the databases are OVN
// interconnect's.
func (n *Node) logs(e Era, r *sosReport) {
	if !e.HasClientLogs() {
		return
	}
	for name, text := range n.ClientLogs {
		r.tree.put(e.central+"/"+name, text)
		r.copied("openshift_ovn", "/"+e.central+"/"+name, e.central+"/"+name)
	}
}

func (r *sosReport) copied(name, specification, file string) {
	p := r.m.plugin(name)
	p.Files = append(p.Files, copied{specification, []string{file}})
}
