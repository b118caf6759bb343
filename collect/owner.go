package collect

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"strings"
	"time"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// owner holds the facts in a database about its node or its deployment.
type owner struct {
	host     string   // "" for a whole deployment, or unknown
	hostname string   // external_ids:hostname of conf.db
	system   string   // the node's system-id
	remote   bool     // the node has ovn-remote: it is a chassis of OVN
	encaps   []string // the node's encap IPs
	bridges  []string
	readable bool

	chassis   []chassis       // of the southbound database
	datapaths map[string]bool // UUIDs of logical switches and routers
	global    string          // UUID of the row of NB_Global or SB_Global
	identity  string          // options that ovn-northd copies from NB_Global to SB_Global
	changed   time.Time       // of the last transaction
}

// chassis is a row of the southbound table Chassis.
type chassis struct {
	name, host string
	encaps     []string
}

// owner returns the owner of a database. The tables are read the first time only:
// a database of gigabytes takes a minute.
func (r *filesReader) owner(db *recording.Database) owner {
	info, err := db.Inspect(r.ctx)
	if err != nil {
		return owner{}
	}
	if r.owners == nil {
		r.owners = map[string]owner{}
	}
	o, known := r.owners[db.Spooled]
	if !known {
		o = readOwner(r.ctx, db.Spooled, workdir.KindOfSchema(info.Name))
		r.owners[db.Spooled] = o
	}
	return o
}

// readOwner reads the owner from the tables of a database. The OVS database names
// its host. With OVN interconnect, each node has its own northbound and southbound
// database, which name the node.
func readOwner(ctx context.Context, path string, kind workdir.Kind) owner {
	tables := map[workdir.Kind][]string{
		workdir.OVS: {"Open_vSwitch", "Bridge"},
		workdir.NB:  {"NB_Global", "Logical_Switch", "Logical_Router"},
		workdir.SB:  {"SB_Global", "Chassis", "Encap", "Datapath_Binding"},
	}[kind]
	var o owner
	if tables == nil {
		return o
	}
	content, _, err := file.Read(ctx, path, tables...)
	if err != nil {
		return o // judge reports the problem of the file
	}
	o.readable, o.changed, o.datapaths = true, content.Changed, map[string]bool{}
	for _, r := range content.Rows("Open_vSwitch") {
		o.addSwitch(r.Map("external_ids"))
	}
	for _, r := range content.Rows("Bridge") {
		o.bridges = append(o.bridges, r.String("name"))
	}
	for _, r := range append(content.Rows("NB_Global"), content.Rows("SB_Global")...) {
		options := r.Map("options")
		o.global = r.UUID
		o.identity = strings.Trim(options["mac_prefix"]+" "+options["svc_monitor_mac"], " ")
		// ovn-kubernetes names the one zone of a cluster without interconnect "global".
		if name := options["name"]; name != "global" {
			o.host = name
		}
	}
	for _, uuid := range append(content.UUIDs("Logical_Switch"), content.UUIDs("Logical_Router")...) {
		o.datapaths[uuid] = true
	}
	o.addSouthbound(content)
	return o
}

// addSwitch takes the facts about the node from external_ids of the OVS database. A key
// may end in the system-id (ovn-controller(8), "CONFIGURATION").
func (o *owner) addSwitch(ids map[string]string) {
	o.readable = true
	o.hostname, o.system = ids["hostname"], ids["system-id"]
	o.host = cmp.Or(o.hostname, o.system)
	own := func(key string) string { return cmp.Or(ids[key+"-"+o.system], ids[key]) }
	o.remote = own("ovn-remote") != ""
	for ip := range strings.SplitSeq(own("ovn-encap-ip"), ",") {
		o.encaps = appendAddress(o.encaps, ip)
	}
}

func (o *owner) addSouthbound(content *file.Content) {
	addresses := map[string]string{}
	for _, r := range content.Rows("Encap") {
		addresses[r.UUID] = r.String("ip")
	}
	for _, r := range content.Rows("Chassis") {
		c := chassis{name: r.String("name"), host: r.String("hostname")}
		for _, uuid := range r.UUIDs("encaps") {
			c.encaps = appendAddress(c.encaps, addresses[uuid])
		}
		o.chassis = append(o.chassis, c)
	}
	for _, r := range content.Rows("Datapath_Binding") {
		ids := r.Map("external_ids")
		uuids := append(r.UUIDs("nb_uuid"), ids["logical-switch"], ids["logical-router"]) // nb_uuid since OVN 25.09
		for _, uuid := range uuids {
			if uuid != "" {
				o.datapaths[uuid] = true
			}
		}
	}
}

// appendAddress appends an IP address in its canonical notation.
func appendAddress(list []string, text string) []string {
	ip, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil {
		return list
	}
	return append(list, ip.Unmap().String())
}

// ofNode returns the facts about a node from its OVS database, or else from the output
// of ovs-vsctl. readable is false if the source has neither.
func (r *filesReader) ofNode(n *recording.Node) owner {
	for i := range n.Databases {
		if db := &n.Databases[i]; db.Kind(r.ctx) == workdir.OVS {
			if o := r.owner(db); o.readable {
				return o
			}
		}
	}
	var o owner
	for _, row := range printedSwitches(n) {
		if ids := file.PrintedMap(row.Column("external_ids")); ids != nil {
			o.addSwitch(ids)
			return o
		}
	}
	return o
}

// printedSwitches returns the rows of the table Open_vSwitch in the outputs of
// `ovsdb-client -f list dump` and `ovs-vsctl list Open_vSwitch`, one of each.
func printedSwitches(n *recording.Node) (rows []ovsdb.Record) {
	for _, name := range []string{workdir.RecordedDatabaseDump, workdir.RecordedList("Open_vSwitch")} {
		for _, output := range n.Outputs(recording.Name(name), "") {
			if row, ok := printedSwitch(output.Spooled); ok {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func printedSwitch(path string) (row ovsdb.Record, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return row, false
	}
	defer f.Close()
	tables, err := ovsdb.Tables(f, "Open_vSwitch")
	if err != nil || len(tables["Open_vSwitch"]) != 1 {
		return row, false
	}
	return tables["Open_vSwitch"][0], true
}

// readPorts returns the logical ports in a database: of the interfaces of an OVS
// database, or of the table Port_Binding of a southbound one.
func readPorts(ctx context.Context, path string, kind workdir.Kind) map[string]bool {
	table := map[workdir.Kind]string{workdir.OVS: "Interface", workdir.SB: "Port_Binding"}[kind]
	ports := map[string]bool{}
	content, _, err := file.Read(ctx, path, table)
	if err != nil {
		return ports // judge reports what is wrong with the file
	}
	for _, r := range content.Rows(table) {
		if name := cmp.Or(r.String("logical_port"), r.Map("external_ids")["iface-id"]); name != "" {
			ports[name] = true
		}
	}
	return ports
}

// correctHost replaces a host's name that is from the name of an archive by that in the
// OVS database, if the archive's name continues with a label or a case.
func (r *filesReader) correctHost(n *recording.Node) {
	if !n.HostOfArchive {
		return
	}
	hostname := r.ofNode(n).hostname
	rest, begins := strings.CutPrefix(strings.ToLower(n.Host), shortName(hostname))
	if hostname != "" && begins && (rest == "" || rest[0] == '-' || rest[0] == '.') {
		n.Host = hostname
	}
}

// shortName returns a host's name without its domain, in lower case.
func shortName(host string) string {
	short, _, _ := strings.Cut(strings.ToLower(host), ".")
	return short
}

// sameHost reports whether two names are of one host: either may lack the domain.
func sameHost(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return true
	}
	shortA, restA, longA := strings.Cut(a, ".")
	shortB, restB, longB := strings.Cut(b, ".")
	return shortA == shortB && (!longA || !longB || restA == restB)
}
