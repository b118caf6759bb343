package ovn

import (
	"cmp"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Datapath is a logical switch or router, as the southbound database describes it.
type Datapath struct {
	Name       string // in OVN
	Given      string // by a user, "" for none
	Called     string // what its user calls it in place of "switch NAME" or "router NAME", "" for these
	Router     bool
	Key        uint64 // the tunnel key
	Northbound string // the UUID of its northbound row, "" if the southbound row does not have it
}

// LogicalFlowTable is the table of the southbound database with the logical flows.
const LogicalFlowTable = "Logical_Flow"

// DatapathTable is the table of the southbound database with a row for each datapath.
const DatapathTable = "Datapath_Binding"

// String returns what its user calls it, or "switch NAME" or "router NAME", with the name that a user
// gave.
func (d Datapath) String() string {
	if d.Called != "" {
		return d.Called
	}
	kind := "switch"
	if d.Router {
		kind = "router"
	}
	return kind + " " + cmp.Or(d.Given, d.Name)
}

// ReadDatapath reads a row of Datapath_Binding. OVN before 25.09 has no columns for the type and
// the northbound row, and writes both into external_ids.
func ReadDatapath(row ovsdb.Row) Datapath {
	ids := row.Map("external_ids")
	d := Datapath{Name: ids["name"], Given: ids["name2"], Router: ids["logical-router"] != "" || row.String("type") == "logical-router",
		Northbound: cmp.Or(ids["logical-switch"], ids["logical-router"])}
	for _, uuid := range row.UUIDs("nb_uuid") {
		d.Northbound = uuid
	}
	key, _ := row.Int("tunnel_key")
	d.Key = uint64(key)
	return d
}

// Datapaths returns the datapaths of a southbound database by the UUIDs of their rows. With an
// error, it returns the datapaths before the row that can't be read.
func Datapaths(sb *file.Index) (map[string]Datapath, error) {
	all := map[string]Datapath{}
	for row, err := range sb.Rows(DatapathTable, "tunnel_key", "external_ids", "type", "nb_uuid") {
		if err != nil {
			return all, err
		}
		all[row.UUID] = ReadDatapath(row)
	}
	return all, nil
}

// DatapathGroupTable is the table of groups of datapaths that share logical flows.
const DatapathGroupTable = "Logical_DP_Group"

// DatapathsOf returns the UUIDs of the datapaths of a logical flow. members returns the datapaths
// of a row of Logical_DP_Group.
func DatapathsOf(logicalFlow ovsdb.Row, members func(group string) []string) []string {
	uuids := logicalFlow.UUIDs("logical_datapath")
	for _, group := range logicalFlow.UUIDs("logical_dp_group") {
		uuids = append(uuids, members(group)...)
	}
	return uuids
}
