package synth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// write writes the OVS database of a node.
func (n *node) write(ctx context.Context, schema file.Schema, path string) error {
	tables := map[string][]ovsdb.Record{}
	var bridges []string
	for _, bridge := range n.bridges {
		bridges = append(bridges, n.addBridge(tables, bridge))
	}
	datapath := n.record("Datapath", "", map[string]string{"capabilities": dict(capabilities())})
	tables["Datapath"] = []ovsdb.Record{datapath}
	tables["Open_vSwitch"] = []ovsdb.Record{n.record("Open_vSwitch", "", map[string]string{"bridges": list(bridges),
		"datapaths": "{" + datapathType + "=" + datapath.UUID + "}", "external_ids": dict(n.identity())})}
	_, err := file.FromTables(ctx, schema, tables, path) // an older schema has no table of datapaths
	return err
}

// datapathType is the datapath of the kernel.
const datapathType = "system"

// capabilities returns the capabilities of a datapath on which the flows of ovn-controller
// depend (lib/features.c of OVN), as Linux 6.1 with Open vSwitch 3.1 has them.
func capabilities() map[string]string {
	return map[string]string{"ct_zero_snat": "true", "ct_flush": "true", "max_hash_alg": "0"}
}

// addBridge adds the rows of a bridge and returns its UUID.
func (n *node) addBridge(tables map[string][]ovsdb.Record, bridge bridge) string {
	local := iface{name: bridge.name, kind: "internal"}
	var ports []string
	for i, iface := range append([]iface{local}, bridge.interfaces...) {
		number := i
		if i == 0 {
			number = localPort
		}
		row := n.record("Interface", iface.name, map[string]string{"name": text(iface.name), "type": text(iface.kind), "external_ids": dict(iface.ids), "ofport": strconv.Itoa(number)})
		port := n.record("Port", iface.name, map[string]string{"name": text(iface.name), "interfaces": row.UUID})
		tables["Interface"] = append(tables["Interface"], row)
		tables["Port"] = append(tables["Port"], port)
		ports = append(ports, port.UUID)
	}
	row := n.record("Bridge", bridge.name, map[string]string{"name": text(bridge.name), "fail_mode": text(bridge.failMode), "datapath_type": text(datapathType),
		"ports": list(ports)})
	tables["Bridge"] = append(tables["Bridge"], row)
	return row.UUID
}

// identity returns the external_ids from which ovn-controller makes the chassis that the
// southbound database has (ovn-controller(8)).
func (n *node) identity() ovn.Settings {
	ids := ovn.Settings{"system-id": n.Name}
	if n.Hostname != "" {
		ids["hostname"] = n.Hostname
	}
	for key, value := range n.Config {
		if strings.HasPrefix(key, "ovn-") && value != "" {
			ids[key] = value
		}
	}
	if n.Config["is-interconn"] == "true" {
		ids["ovn-is-interconn"] = "true"
	}
	if len(n.Zones) > 0 {
		ids["ovn-transport-zones"] = strings.Join(n.Zones, ",")
	}
	n.addEncaps(ids)
	return ids
}

func (n *node) addEncaps(ids ovn.Settings) {
	var kinds, ips []string
	for _, encap := range n.Encaps {
		kinds, ips = append(kinds, encap.Type), append(ips, encap.IP)
		if encap.Options["csum"] == "false" {
			ids["ovn-encap-csum"] = "false"
		}
		if encap.Options["is_default"] == "true" {
			ids["ovn-encap-ip-default"] = encap.IP
		}
	}
	for key, values := range map[string][]string{"ovn-encap-type": kinds, "ovn-encap-ip": ips} {
		slices.Sort(values)
		if values = slices.Compact(values); len(values) > 0 {
			ids[key] = strings.Join(values, ",")
		}
	}
}

// record returns a row. Its UUID depends on nothing but the node, the table and the name.
func (n *node) record(table, name string, columns map[string]string) ovsdb.Record {
	return record(n.Name+"\x00"+table, name, columns)
}

// record returns a row whose UUID depends on nothing but the names.
func record(table, name string, columns map[string]string) ovsdb.Record {
	sum := sha256.Sum256([]byte(table + "\x00" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8 of RFC 9562
	digits := hex.EncodeToString(sum[:16])
	record := ovsdb.Record{UUID: strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")}
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		record.Columns = append(record.Columns, ovsdb.Value{Column: column, Text: columns[column]})
	}
	return record
}

// text, list and dict return values in the notation of ovs-vsctl.
func text(value string) string {
	raw, _ := json.Marshal(value) // a string has always a text
	return string(raw)
}

func list(elements []string) string { return "[" + strings.Join(elements, ", ") + "]" }

func dict(values map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, text(key)+"="+text(values[key]))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}
