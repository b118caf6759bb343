package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Southbound holds the chassis of a southbound database and their ports.
type Southbound struct {
	chassis   []ovn.Chassis
	bindings  []ovn.Binding
	datapaths map[string]ovn.Datapath // by the UUIDs of their rows
}

// Read reads a southbound database.
func Read(ctx context.Context, path string) (*Southbound, error) {
	content, _, err := file.Read(ctx, path, ovn.ChassisTable, "Encap", ovn.BindingTable, ovn.DatapathTable)
	if err != nil {
		return nil, err
	}
	if content.Info.Name != ovsdb.SB {
		return nil, fmt.Errorf("%s holds %s, not %s", path, content.Info.Name, ovsdb.SB)
	}
	southbound := &Southbound{datapaths: map[string]ovn.Datapath{}}
	if err := southbound.readChassis(content); err != nil {
		return nil, err
	}
	for _, row := range content.Rows(ovn.DatapathTable) {
		southbound.datapaths[row.UUID] = ovn.ReadDatapath(row)
	}
	if err := ovn.EachBinding(content, func(b ovn.Binding) { southbound.bindings = append(southbound.bindings, b) }); err != nil {
		return nil, err
	}
	slices.SortFunc(southbound.bindings, func(a, b ovn.Binding) int { return strings.Compare(a.Port, b.Port) })
	return southbound, nil
}

// readChassis reads the chassis, each with its tunnels in the order of their types.
func (s *Southbound) readChassis(content *file.Content) (err error) {
	s.chassis, err = ovn.ReadChassis(content)
	for _, chassis := range s.chassis {
		slices.SortFunc(chassis.Encaps, func(a, b ovn.Encap) int { return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.IP, b.IP)) })
	}
	slices.SortFunc(s.chassis, func(a, b ovn.Chassis) int {
		return cmp.Or(strings.Compare(a.Title(), b.Title()), strings.Compare(a.Name, b.Name))
	})
	return err
}

// Local returns the chassis whose ports the database holds, in the order of their titles:
// with OVN interconnection the chassis of its own zone, else all. Hardware gateways are left out.
func (s *Southbound) Local() []ovn.Chassis {
	return slices.DeleteFunc(slices.Clone(s.chassis), func(chassis ovn.Chassis) bool { return chassis.Remote() || chassis.VTEP })
}

// ErrNoChassis is wrapped when no chassis has a name, or several have it.
var ErrNoChassis = fault.Wrap(fault.Usage, errors.New("no such chassis"))

// selectByName returns the chassis of these names, each once: a name is a host name or a
// system-id.
func selectByName(all []ovn.Chassis, names []string) ([]ovn.Chassis, error) {
	var chosen []ovn.Chassis
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(all), func(chassis ovn.Chassis) bool { return chassis.Name != name && chassis.Hostname != name })
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("%w: %q in the OVN SB database; there are: %s", ErrNoChassis, name, titles(all))
		case len(found) > 1:
			return nil, fmt.Errorf("%w: several are called %q: choose one by its system-id: %s, %s", ErrNoChassis, name, found[0].Name, found[1].Name)
		}
		if !slices.ContainsFunc(chosen, func(chassis ovn.Chassis) bool { return chassis.Name == found[0].Name }) {
			chosen = append(chosen, found[0])
		}
	}
	return chosen, nil
}
