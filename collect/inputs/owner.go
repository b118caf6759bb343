package inputs

import (
	"context"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// belongs says whose a database is.
type belongs struct {
	host     string // "" for a whole cluster's, or unknown
	version  string // of OVS, from conf.db
	system   string // the node's system-id
	chassis  []string
	bridges  []string
	readable bool
}

// readOwner reads from a database whose it is: the OVS database names its host;
// with interconnect, each node has its own northbound and southbound database,
// which name it.
func readOwner(ctx context.Context, path, database string) belongs {
	tables := map[string][]string{
		ovsdb.OVS: {"Open_vSwitch", "Bridge"}, ovsdb.NB: {"NB_Global"}, ovsdb.SB: {"SB_Global", "Chassis"},
	}[database]
	var b belongs
	if tables == nil {
		return b
	}
	content, _, err := file.Read(ctx, path, tables...)
	if err != nil {
		return b // what is wrong with it is said where it is inspected
	}
	b.readable = true
	for _, r := range content.Rows("Open_vSwitch") {
		ids := r.Map("external_ids")
		b.system, b.version = ids["system-id"], r.String("ovs_version")
		b.host = ids["hostname"]
		if b.host == "" {
			b.host = b.system
		}
	}
	for _, r := range content.Rows("Bridge") {
		b.bridges = append(b.bridges, r.String("name"))
	}
	for _, r := range append(content.Rows("NB_Global"), content.Rows("SB_Global")...) {
		// "global" is what ovn-kubernetes calls the one zone of a cluster without interconnect.
		if name := r.Map("options")["name"]; name != "global" {
			b.host = name
		}
	}
	for _, r := range content.Rows("Chassis") {
		b.chassis = append(b.chassis, r.String("name"), r.String("hostname"))
	}
	return b
}

// shortName is a host's name without its domain: that of names of one host is the same.
func shortName(host string) string {
	short, _, _ := strings.Cut(strings.ToLower(host), ".")
	return short
}

// sameHost tells whether two names are of one host: one may lack its domain.
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
