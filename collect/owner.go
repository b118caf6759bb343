package collect

import (
	"cmp"
	"context"
	"strings"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// owner is the node or cluster that a database describes.
type owner struct {
	host     string   // "" for a whole cluster, or unknown
	version  string   // of OVS, from conf.db
	system   string   // the node's system-id
	chassis  []string // names and hosts in the southbound database
	bridges  []string
	readable bool
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
		o = readOwner(r.ctx, db.Spooled, info.Name)
		r.owners[db.Spooled] = o
	}
	return o
}

// readOwner reads the owner from the tables of a database. The OVS database names
// its host. With OVN interconnect, each node has its own northbound and southbound
// database, which name the node.
func readOwner(ctx context.Context, path, schema string) owner {
	tables := map[workdir.Kind][]string{
		workdir.OVS: {"Open_vSwitch", "Bridge"}, workdir.NB: {"NB_Global"}, workdir.SB: {"SB_Global", "Chassis"},
	}[workdir.KindOfSchema(schema)]
	var o owner
	if tables == nil {
		return o
	}
	content, _, err := file.Read(ctx, path, tables...)
	if err != nil {
		return o // judge reports the problem of the file
	}
	o.readable = true
	for _, r := range content.Rows("Open_vSwitch") {
		ids := r.Map("external_ids")
		o.system, o.version = ids["system-id"], r.String("ovs_version")
		o.host = cmp.Or(ids["hostname"], o.system)
	}
	for _, r := range content.Rows("Bridge") {
		o.bridges = append(o.bridges, r.String("name"))
	}
	for _, r := range append(content.Rows("NB_Global"), content.Rows("SB_Global")...) {
		// ovn-kubernetes names the one zone of a cluster without interconnect "global".
		if name := r.Map("options")["name"]; name != "global" {
			o.host = name
		}
	}
	for _, r := range content.Rows("Chassis") {
		o.chassis = append(o.chassis, r.String("name"), r.String("hostname"))
	}
	return o
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
