package collect

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"strings"
	"time"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
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
	owner, known := r.owners[db.Spooled]
	if !known {
		owner = readOwner(r.ctx, db, workdir.KindOfSchema(info.Name))
		r.owners[db.Spooled] = owner
	}
	return owner
}

// readOwner reads the owner from the tables of a database. The OVS database names
// its host. With OVN interconnect, each node has its own northbound and southbound
// database, which name the node.
func readOwner(ctx context.Context, db *recording.Database, kind workdir.Kind) owner {
	tables := map[workdir.Kind][]string{
		workdir.OVS: {"Open_vSwitch", "Bridge"},
		workdir.NB:  {"NB_Global", "Logical_Switch", "Logical_Router"},
		workdir.SB:  {"SB_Global", ovn.ChassisTable, "Encap", ovn.DatapathTable},
	}[kind]
	var owner owner
	if tables == nil {
		return owner
	}
	content, err := db.Read(ctx, tables...)
	if err != nil {
		return owner // judge reports the problem of the file
	}
	owner.readable, owner.changed, owner.datapaths = true, content.Changed, map[string]bool{}
	for _, row := range content.Rows("Open_vSwitch") {
		owner.addSwitch(row.Map("external_ids"))
	}
	for _, row := range content.Rows("Bridge") {
		owner.bridges = append(owner.bridges, row.String("name"))
	}
	for _, row := range append(content.Rows("NB_Global"), content.Rows("SB_Global")...) {
		options := row.Map("options")
		owner.global = row.UUID
		owner.identity = strings.Trim(options["mac_prefix"]+" "+options["svc_monitor_mac"], " ")
		// ovn-kubernetes names the one zone of a cluster without interconnect "global".
		if name := options["name"]; name != "global" {
			owner.host = name
		}
	}
	for _, uuid := range append(content.UUIDs("Logical_Switch"), content.UUIDs("Logical_Router")...) {
		owner.datapaths[uuid] = true
	}
	owner.addSouthbound(content)
	return owner
}

// addSwitch takes the facts about the node from external_ids of the OVS database.
func (o *owner) addSwitch(settings ovn.Settings) {
	o.readable = true
	o.hostname, o.system = settings.Hostname(), settings.Chassis()
	o.host = cmp.Or(o.hostname, o.system)
	o.remote = settings.Get("ovn-remote") != ""
	for _, ip := range settings.Encaps() {
		o.encaps = append(o.encaps, ip.String())
	}
}

func (o *owner) addSouthbound(content *file.Content) {
	all, _ := ovn.ReadChassis(content) // a content has no errors
	for _, c := range all {
		chassis := chassis{name: c.Name, host: c.Hostname}
		for _, encap := range c.Encaps {
			chassis.encaps = appendAddress(chassis.encaps, encap.IP)
		}
		o.chassis = append(o.chassis, chassis)
	}
	for _, row := range content.Rows(ovn.DatapathTable) {
		if uuid := ovn.ReadDatapath(row).Northbound; uuid != "" {
			o.datapaths[uuid] = true
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

// ownerOfNode returns the facts about a node from its OVS database, or else from the output
// of ovs-vsctl. readable is false if the source has neither.
func (r *filesReader) ownerOfNode(node *recording.Recording) owner {
	for i := range node.Databases {
		if db := &node.Databases[i]; db.Kind(r.ctx) == workdir.OVS {
			if owner := r.owner(db); owner.readable {
				return owner
			}
		}
	}
	var owner owner
	for _, row := range printedSwitches(node) {
		if ids := file.PrintedMap(row.Column("external_ids")); ids != nil {
			owner.addSwitch(ids)
			return owner
		}
	}
	return owner
}

// printedSwitches returns the rows of the table Open_vSwitch in the outputs of
// `ovsdb-client -f list dump` and `ovs-vsctl list Open_vSwitch`, one of each.
func printedSwitches(node *recording.Recording) (rows []ovsdb.Record) {
	for _, name := range []string{workdir.RecordedDatabaseDump, workdir.RecordedList("Open_vSwitch")} {
		for _, output := range node.Outputs(recording.Name(name), "") {
			if row, ok := printedSwitch(output.Spooled); ok {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func printedSwitch(path string) (row ovsdb.Record, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return row, false
	}
	defer file.Close()
	tables, err := ovsdb.Tables(file, "Open_vSwitch")
	if err != nil || len(tables["Open_vSwitch"]) != 1 {
		return row, false
	}
	return tables["Open_vSwitch"][0], true
}

// readPorts returns the logical ports in a database: of the interfaces of an OVS
// database, or of the table Port_Binding of a southbound one.
func readPorts(ctx context.Context, db *recording.Database, kind workdir.Kind) map[string]bool {
	table := map[workdir.Kind]string{workdir.OVS: "Interface", workdir.SB: "Port_Binding"}[kind]
	ports := map[string]bool{}
	content, err := db.Read(ctx, table)
	if err != nil {
		return ports // judge reports what is wrong with the file
	}
	for _, row := range content.Rows(table) {
		if name := cmp.Or(row.String("logical_port"), row.Map("external_ids")["iface-id"]); name != "" {
			ports[name] = true
		}
	}
	return ports
}

// correctHost replaces a host's name that is from the name of an archive by that in the
// OVS database, if the archive's name continues with a label or a case.
func (r *filesReader) correctHost(node *recording.Recording) {
	if !node.HostOfArchive {
		return
	}
	hostname := r.ownerOfNode(node).hostname
	rest, begins := strings.CutPrefix(strings.ToLower(node.Host), shortName(hostname))
	if hostname != "" && begins && (rest == "" || rest[0] == '-' || rest[0] == '.') {
		node.Host = hostname
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
