package ovsdb

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// TableWords returns the name of a table in words: "forwarding group".
func TableWords(table string) string { return strings.ToLower(strings.ReplaceAll(table, "_", " ")) }

// UUIDOf makes a UUID of a text: the same one for the same text.
func UUIDOf(text string) string {
	id := fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:32]}, "-")
}

// IsTableName reports whether a text can be the name of a table: an <id> of RFC 7047, 3.1.
func IsTableName(text string) bool { return idText.MatchString(text) }

var idText = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NamingColumns returns the columns that RecordNames reads.
func NamingColumns() []string {
	return []string{"name", "logical_port", "external_ids", "ip_prefix", "external_ip", "logical_ip", "match", "ip", "address", "target", "hostname"}
}

// RecordNames returns the names by which users know a row of a table, the best first: the
// ids that Neutron or OVN-Kubernetes wrote into it, and its column "name" or, for a port
// binding, "logical_port". A row without them is known by what sets it apart for a reader,
// as the match of an ACL.
func (r Row) RecordNames(table string) []string {
	ids := r.Map("external_ids")
	names := []string{r.String("name"), r.String("logical_port"), ids["name"], ids["neutron:port_name"], ids["neutron:network_name"], ids["neutron:router_name"],
		ids["k8s.ovn.org/primary-id"], ids["k8s.ovn.org/id"], ids["iface-id"], ids["neutron:security_group_rule_id"], r.String("hostname")}
	if id := ids["k8s.ovn.org/id"]; id != "" && (table == "Port_Group" || table == "Address_Set") {
		names = append([]string{id}, names...) // the column name is a hash of it
	}
	if IsUUID(names[0]) || IsUUID(names[1]) { // Neutron's ids of ports and networks
		slices.SortStableFunc(names, func(a, b string) int { return boolToInt(IsUUID(a)) - boolToInt(IsUUID(b)) })
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	switch {
	case len(names) > 0:
		return names
	case table == "Open_vSwitch" || table == "NB_Global" || table == "SB_Global":
		return []string{"."}
	case r.String("external_ip") != "":
		return []string{r.String("external_ip") + " " + r.String("logical_ip")}
	}
	for _, column := range []string{"ip_prefix", "match", "ip", "address", "target"} {
		if text := r.String(column); text != "" {
			return []string{text}
		}
	}
	return nil
}

func boolToInt(value bool) int {
	if value {
		return 1
	}
	return 0
}
