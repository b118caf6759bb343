package synth

import (
	"context"

	"ovs-offline/pkg/ovsdb"
)

// bindPorts binds the ports of a southbound database to chassis, as the ovn-controllers would
// that claim them.
func bindPorts(ctx context.Context, sb *ovsdb.Client, nb *northbound) error {
	chassis, err := chassisByName(ctx, sb)
	if err != nil {
		return err
	}
	active, err := activeGateways(ctx, sb)
	if err != nil {
		return err
	}
	rows, err := sb.Select(ctx, "Port_Binding", "logical_port", "type", "parent_port", "options", "ha_chassis_group")
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, row := range rows {
		var places []string
		switch row.String("type") {
		case "":
			port := row.String("logical_port")
			if parents := row.Strings("parent_port"); len(parents) > 0 {
				port = parents[0]
			}
			places = ids(chassis, nb.placeOf(port)...)
		case "chassisredirect", "external":
			for _, group := range row.UUIDs("ha_chassis_group") {
				places = append(places, active[group]...)
			}
		case "remote": // of another zone: ovn-ic binds it
			places = ids(chassis, row.Value("options", "requested-chassis"))
		case "l3gateway":
			places = ids(chassis, row.Value("options", "l3gateway-chassis"))
		case "l2gateway":
			places = ids(chassis, row.Value("options", "l2gateway-chassis"))
		}
		if len(places) > 0 {
			changes = append(changes, ovsdb.Update("Port_Binding", row.UUID, bound(sb, places)))
		}
	}
	return sb.Transact(ctx, changes...)
}

// bound returns the columns of a port that is on chassis.
func bound(sb *ovsdb.Client, places []string) ovsdb.Columns {
	columns := ovsdb.Columns{"chassis": ovsdb.Ref{UUID: places[0]}}
	if sb.HasColumn("Port_Binding", "up") {
		columns["up"] = true
	}
	if len(places) > 1 && sb.HasColumn("Port_Binding", "additional_chassis") {
		var others []ovsdb.Ref
		for _, place := range places[1:] {
			others = append(others, ovsdb.Ref{UUID: place})
		}
		columns["additional_chassis"] = others
	}
	return columns
}

// ids returns the UUIDs of chassis of these names.
func ids(chassis map[string]string, names ...string) (list []string) {
	for _, name := range names {
		if id := chassis[name]; id != "" {
			list = append(list, id)
		}
	}
	return list
}

// chassisByName returns the UUIDs of chassis by their host names and by their names.
func chassisByName(ctx context.Context, sb *ovsdb.Client) (map[string]string, error) {
	rows, err := sb.Select(ctx, "Chassis", "name", "hostname")
	found := map[string]string{}
	for _, row := range rows {
		found[row.String("hostname")] = row.UUID
	}
	for _, row := range rows {
		found[row.String("name")] = row.UUID
	}
	return found, err
}

// activeGateways returns the chassis of the highest priority of each group, by the group's UUID.
func activeGateways(ctx context.Context, sb *ovsdb.Client) (map[string][]string, error) {
	members, err := sb.Select(ctx, "HA_Chassis", "chassis", "priority")
	if err != nil {
		return nil, err
	}
	byID := map[string]ovsdb.Row{}
	for _, row := range members {
		byID[row.UUID] = row
	}
	groups, err := sb.Select(ctx, "HA_Chassis_Group", "ha_chassis")
	active := map[string][]string{}
	for _, group := range groups {
		best := -1
		for _, id := range group.UUIDs("ha_chassis") {
			member := byID[id]
			if priority, _ := member.Int("priority"); priority > best && len(member.UUIDs("chassis")) > 0 {
				best, active[group.UUID] = priority, member.UUIDs("chassis")
			}
		}
	}
	return active, err
}
