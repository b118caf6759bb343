// Package sosreport reads a sos report, an archive or a directory, in one pass,
// and says what it holds by meaning: the flow dumps of a bridge, the databases,
// the recorded state. Where a thing stands in the report, under which mangled
// name and of which sos version, is known here and nowhere else.
package sosreport

import (
	"io"
	"os"
	"regexp"
	"strings"
)

// Meaning is what a command's output tells, spelled as the command with dots
// for slashes. The recorded state of a workdir carries the same names.
type Meaning string

// The meanings. Dumps come in OpenFlow versions, see Output.OpenFlow.
const (
	Flows         Meaning = "dump-flows"
	Groups        Meaning = "dump-groups"
	Meters        Meaning = "dump-meters"
	TLVMap        Meaning = "dump-tlv-map"
	MeterStats    Meaning = "meter-stats"
	Show          Meaning = "show"
	BridgeFlows   Meaning = "bridge.dump-flows"
	Features      Meaning = "dpif.show-dp-features"
	FDB           Meaning = "fdb.show"
	MDB           Meaning = "mdb.show"
	RSTP          Meaning = "rstp.show"
	STP           Meaning = "stp.show"
	BFD           Meaning = "bfd.show"
	Bond          Meaning = "bond.show"
	CFM           Meaning = "cfm.show"
	LACP          Meaning = "lacp.show"
	Conntrack     Meaning = "dpctl.dump-conntrack"
	DatapathFlows Meaning = "dpctl.dump-flows"
	DatapathShow  Meaning = "dpctl.show"
	DpifShow      Meaning = "dpif.show"
	ListBridge    Meaning = "list-bridge"
	ListDatapath  Meaning = "list-datapath"
	ListInterface Meaning = "list-interface"
	ListOVS       Meaning = "list-open_vswitch"
	ListPort      Meaning = "list-port"
	Neighbours    Meaning = "tnl.arp.show"
	Routes        Meaning = "ovs.route.show"
	TunnelPorts   Meaning = "tnl.ports.show"
	Tunnels       Meaning = "ofproto.list-tunnels"

	listBr  Meaning = "list-br"
	version Meaning = "version"
)

// Output is what one command printed on the node.
type Output struct {
	Meaning  Meaning
	Bridge   string // "" where the command is not about one bridge
	OpenFlow string // "OpenFlow15"; "" for a command without -O
	Origin   string // its path in the report
	File     string // where its text stands now
	Size     int64
	// Truncated says that sos cut it: only its end is there.
	Truncated bool
}

// Database is a file that stands where a database of OVS or OVN does. What it
// is, its content says.
type Database struct {
	Origin    string
	File      string
	Size      int64
	Truncated bool
}

// Report is what a sos report holds.
type Report struct {
	Host       string
	SosVersion string
	OVSVersion string
	OVNVersion string
	// BytesRead counts what was read of the source, each byte once.
	BytesRead int64
	// Bridges in the order in which the node listed them.
	Bridges   []string
	Databases []Database
	// Dangling are the links to databases whose targets the report lacks.
	Dangling []string

	outputs []Output
}

// Outputs returns every output of that meaning for a bridge ("" for those that
// are about the whole node), in the order of the table of commands.
func (r *Report) Outputs(m Meaning, bridge string) []Output {
	var found []Output
	for _, o := range r.outputs {
		if o.Meaning == m && o.Bridge == bridge {
			found = append(found, o)
		}
	}
	return found
}

var (
	versionLine = regexp.MustCompile(`\(Open vSwitch\) ([0-9][^\s]*)`)
	rpmLine     = regexp.MustCompile(`(?m)^(openvswitch|ovn)(?:-20[0-9]{2})?[0-9.]*-(?:[0-9]+:)?([0-9][^-\s]*)-`)
	debLine     = regexp.MustCompile(`(?m)^ii\s+(openvswitch-switch|ovn-common)\s+(?:[0-9]+:)?([0-9][^-+~\s]*)`)
	dirName     = regexp.MustCompile(`^sosreport-(.+?)(?:-obfuscated)?-[0-9]{4}-[0-9]{2}-[0-9]{2}-[a-z0-9]+`)
)

// describe fills in what the report says of the node it was taken on.
func (r *Report) describe(c *contents) {
	for _, name := range []string{"sos_commands/host/hostname", "hostname", "etc/hostname"} {
		if r.Host == "" {
			r.Host = firstWord(c.text(name))
		}
	}
	for _, name := range []string{c.top, c.name} {
		if m := dirName.FindStringSubmatch(name); r.Host == "" && m != nil {
			r.Host = m[1]
		}
	}
	r.SosVersion = strings.TrimSpace(strings.TrimPrefix(c.text("version.txt"), "sosreport:"))
	if c.manifest != nil && c.manifest.Version != "" {
		r.SosVersion = c.manifest.Version
	}
	for _, o := range r.Outputs(version, "") {
		if m := versionLine.FindStringSubmatch(readStart(o.File)); m != nil && r.OVSVersion == "" {
			r.OVSVersion = m[1]
		}
	}
	r.packageVersions(c)
}

// packageVersions knows OVN's version, which no command in a report tells.
func (r *Report) packageVersions(c *contents) {
	packages := c.text("sos_commands/rpm/package-data") + "\n" + c.text("installed-rpms") + "\n" + c.text("sos_commands/dpkg/dpkg_-l")
	for _, pattern := range []*regexp.Regexp{rpmLine, debLine} {
		for _, m := range pattern.FindAllStringSubmatch(packages, -1) {
			if strings.HasPrefix(m[1], "ovn") && r.OVNVersion == "" {
				r.OVNVersion = m[2]
			} else if strings.HasPrefix(m[1], "openvswitch") && r.OVSVersion == "" {
				r.OVSVersion = m[2]
			}
		}
	}
}

// readStart returns the first 8 MiB of a spooled file, "" where it can't be read.
func readStart(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.LimitReader(f, 8<<20)) // what could be read is worth more than nothing
	return string(raw)
}

func firstWord(text string) string {
	if fields := strings.Fields(text); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
