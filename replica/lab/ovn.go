package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

const (
	// assumedChassis is the chassis of a text in which nothing names one.
	assumedChassis = "chassis-1"
	// assumedAddress is the address of its tunnels: in 240.0.0.0/4, which no underlay uses (RFC 1112).
	assumedAddress = "240.0.0.1"
)

// completeChassis gives the switch what ovn-controller needs and the text leaves out: the name of the chassis, a tunnel, the
// integration bridge, and interfaces for the logical ports if the text has none of these.
func (l *lab) completeChassis(ctx context.Context) error {
	db, err := ovsdb.Connect(ctx, l.inner.Socket(workdir.OVS), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Select(ctx, "Open_vSwitch", "external_ids")
	if err != nil || len(rows) != 1 {
		return err
	}
	settings := ovn.Settings(rows[0].Map("external_ids"))
	missing, err := l.missingSettings(ctx, settings)
	if err != nil {
		return err
	}
	var args []string
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		l.script.assume("external_ids:%s of Open_vSwitch is %s: no command sets it", key, missing[key])
		args = append(args, "--", "set", "Open_vSwitch", ".", "external_ids:"+key+"="+ovsdb.Quote(missing[key]))
	}
	if bridges, err := db.Select(ctx, "Bridge", "name"); err != nil {
		return err
	} else if !slices.ContainsFunc(bridges, func(row ovsdb.Row) bool { return row.String("name") == settings.Bridge() }) {
		l.script.assume("the integration bridge %s is added: ovn-controller makes it", settings.Bridge())
		args = append(args, "--", "add-br", settings.Bridge(), "--", "set-fail-mode", settings.Bridge(), "secure")
	}
	ports, err := l.missingInterfaces(ctx, db)
	if err != nil {
		return err
	}
	for _, port := range ports {
		args = append(args, "--", "add-port", settings.Bridge(), port.iface, "--", "set", "Interface", port.iface, "external_ids:iface-id="+ovsdb.Quote(port.name))
	}
	if len(ports) > 0 {
		l.script.assume("no interface has external_ids:iface-id: one is added to %s for each of %s", settings.Bridge(), phrase.Count(len(ports), "logical port"))
	}
	if len(args) == 0 {
		return nil
	}
	return l.vsctl(ctx, args...)
}

// missingSettings returns the settings of ovn-controller that the text leaves out.
func (l *lab) missingSettings(ctx context.Context, settings ovn.Settings) (map[string]string, error) {
	missing := map[string]string{}
	if settings.Chassis() == "" {
		name, err := l.namedChassis(ctx)
		if err != nil {
			return nil, err
		}
		missing["system-id"] = cmp.Or(name, assumedChassis)
	}
	if settings.Get("ovn-encap-type") == "" {
		missing["ovn-encap-type"] = "geneve"
	}
	if settings.Get("ovn-encap-ip") == "" {
		missing["ovn-encap-ip"] = assumedAddress
	}
	return missing, nil
}

// namedChassis returns the first chassis that a gateway of the northbound database names, "" for none.
func (l *lab) namedChassis(ctx context.Context) (string, error) {
	nb, err := ovsdb.Connect(ctx, l.inner.Socket(workdir.NB), ovsdb.NB)
	if err != nil {
		return "", err
	}
	defer nb.Close()
	var names []string
	for _, table := range []string{"Gateway_Chassis", "HA_Chassis"} {
		rows, err := nb.Select(ctx, table, "chassis_name")
		if err != nil {
			return "", err
		}
		for _, row := range rows {
			names = append(names, row.String("chassis_name"))
		}
	}
	routers, err := nb.Select(ctx, "Logical_Router", "options")
	for _, row := range routers {
		names = append(names, row.Value("options", "chassis"))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if slices.Sort(names); err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// logicalPort is a logical port and the interface that it gets.
type logicalPort struct{ name, iface string }

// plainName matches the names of logical ports that an interface can have.
var plainName = lazyregexp.New(`^\w[\w.-]{0,14}$`)

// missingInterfaces returns the logical ports of VMs and pods, if no interface belongs to one.
func (l *lab) missingInterfaces(ctx context.Context, db *ovsdb.Client) (ports []logicalPort, err error) {
	interfaces, err := db.Select(ctx, "Interface", "name", "external_ids")
	used := map[string]bool{}
	for _, row := range interfaces {
		used[row.String("name")] = true
		if row.Value("external_ids", "iface-id") != "" {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	nb, err := ovsdb.Connect(ctx, l.inner.Socket(workdir.NB), ovsdb.NB)
	if err != nil {
		return nil, err
	}
	defer nb.Close()
	rows, err := nb.Select(ctx, "Logical_Switch_Port", "name", "type", "parent_name")
	slices.SortFunc(rows, func(a, b ovsdb.Row) int { return cmp.Compare(a.String("name"), b.String("name")) })
	for i, row := range rows {
		if row.String("type") != "" || len(row.Strings("parent_name")) > 0 {
			continue
		}
		port := logicalPort{row.String("name"), row.String("name")}
		if !plainName.MatchString(port.name) || used[port.name] {
			port.iface = fmt.Sprintf("lport-%d", i+1)
		}
		ports = append(ports, port)
	}
	return ports, err
}

// compute has ovn-northd compute the southbound database, and ovn-controller the flows of the integration bridge.
func (l *lab) compute(ctx context.Context) (err error) {
	choice, err := choose.For(l.dir, l.options.Version).Choose(ctx, l.options.Runtime, l.options.Wanted)
	if err != nil {
		return err
	}
	settings, err := l.settings(ctx)
	if err != nil {
		return err
	}
	const name = "the lab"
	s, err := scratch.Start(ctx, scratch.Options{Dir: l.dir, Runtime: choice.Runtime, NB: l.result(workdir.NB), SB: l.result(workdir.SB), Northd: true, AssumeSessions: true,
		Nodes: []scratch.Recorded{{Name: name, Conf: l.result(workdir.OVS)}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	if err := s.Wait(ctx); err != nil {
		return err
	}
	dump, err := s.Dump(ctx, name, openflow.OpenFlow15)
	if err != nil {
		return err
	}
	for i := range l.bridges {
		if l.bridges[i].Bridge == dump.Bridge {
			l.bridges[i].Dump = dump
		}
	}
	if slices.ContainsFunc(l.script.steps, func(s step) bool { return s.bridge == dump.Bridge }) {
		l.script.assume("the flows of %s are those of ovn-controller, which removes all others", dump.Bridge)
	}
	for _, remark := range s.Remarks() {
		l.script.assume("%s", remark)
	}
	if err := s.Keep(ctx, name, settings, filepath.Join(l.results, "kept.db")); err != nil {
		return err
	}
	if _, _, err := file.Standalone(ctx, filepath.Join(l.results, "kept.db"), l.result(workdir.OVS)); err != nil {
		return err
	}
	_, _, err = file.Standalone(ctx, l.dir.WorkingCopy(workdir.SB), l.result(workdir.SB))
	return err
}

// settings returns the settings in the OVS database that the commands made.
func (l *lab) settings(ctx context.Context) (ovn.Settings, error) {
	content, _, err := file.Read(ctx, l.result(workdir.OVS), "Open_vSwitch")
	if err != nil {
		return nil, err
	}
	for _, row := range content.Rows("Open_vSwitch") {
		return row.Map("external_ids"), nil
	}
	return nil, nil
}
