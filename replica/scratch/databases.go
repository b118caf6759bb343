package scratch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// startDatabases starts the servers of the OVN databases and ovn-northd.
func (s *Scratch) startDatabases(ctx context.Context) (err error) {
	if s.sb, err = s.serve(ctx, workdir.SB, s.options.SB); err != nil {
		return err
	}
	if err := s.closeRemotes(ctx, s.sb, "SB_Global"); err != nil {
		return err
	}
	if err := s.readWatch(ctx); err != nil {
		return err
	}
	if !s.options.Northd {
		return s.addReader(ctx)
	}
	if s.options.Anew {
		if err := s.sb.Transact(ctx, ovsdb.DeleteAll("Logical_Flow")); err != nil {
			return err
		}
	}
	return s.startNorthd(ctx, s.options.NB)
}

// startNorthd starts the server of a copy of an NB database, and ovn-northd.
func (s *Scratch) startNorthd(ctx context.Context, path string) (err error) {
	if s.nb, err = s.serve(ctx, workdir.NB, path); err != nil {
		return err
	}
	if err := s.closeRemotes(ctx, s.nb, "NB_Global"); err != nil {
		return err
	}
	return s.run(ctx, s.options.central(), northd(s.options.Dir))
}

// ReplaceNB puts a copy of another NB database in the place of the present one. Wait waits
// until its flows are installed.
func (s *Scratch) ReplaceNB(ctx context.Context, path string) error {
	s.nb.Close()
	dir := s.options.Dir
	for _, daemon := range []runtime.Daemon{northd(dir), centralServer(dir, workdir.NB)} {
		if err := s.options.central().Stop(ctx, daemon); err != nil {
			return err
		}
	}
	return s.startNorthd(ctx, path)
}

// serve starts the server of a copy of an OVN database, and connects to it.
func (s *Scratch) serve(ctx context.Context, kind workdir.Kind, path string) (*ovsdb.Client, error) {
	dir := s.options.Dir
	remarks, err := replica.Copy(ctx, s.options.central(), kind, path, dir.WorkingCopy(kind), dir.Run())
	s.remarks = append(s.remarks, remarks...)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, s.options.central(), centralServer(dir, kind)); err != nil {
		return nil, err
	}
	return ovsdb.Connect(ctx, dir.Socket(kind), kind.Schema())
}

// closeRemotes removes the addresses and keys of the live deployment from a database, and
// what makes ovn-northd wait before it works.
func (s *Scratch) closeRemotes(ctx context.Context, db *ovsdb.Client, table string) error {
	row, err := singleRow(ctx, db, table, "nb_cfg", "options")
	if err != nil {
		return err
	}
	options := row.Map("options")
	delete(options, "northd-backoff-interval-ms")
	config, _ := row.Int("nb_cfg")
	s.config = max(s.config, config)
	return db.Transact(ctx, ovsdb.Update(table, row.UUID, ovsdb.Columns{"connections": nil, "ssl": nil, "options": options}))
}

// readerSocket is the socket at which the SB database can only be read.
func readerSocket(dir *workdir.Dir) string {
	return filepath.Join(dir.VarRun(workdir.SB), "reader.sock")
}

// addReader makes the server of the SB database listen at a socket at which it accepts no
// changes.
func (s *Scratch) addReader(ctx context.Context) error {
	row, err := singleRow(ctx, s.sb, "SB_Global")
	if err != nil {
		return err
	}
	err = s.sb.Transact(ctx,
		ovsdb.Insert("Connection", "reader", ovsdb.Columns{"target": "punix:" + readerSocket(s.options.Dir), "read_only": true}),
		ovsdb.Update("SB_Global", row.UUID, ovsdb.Columns{"connections": ovsdb.Ref{Name: "reader"}}))
	if err != nil {
		return err
	}
	_, err = daemon.Ask(ctx, s.options.central(), s.options.Dir.VarRun(workdir.SB), "ovsdb-server", "ovsdb-server/add-remote", "db:"+ovsdb.SB+",SB_Global,connections")
	return err
}

// startNode starts the daemons of a node.
func (s *Scratch) startNode(ctx context.Context, daemons *nodeDaemons) error {
	if err := s.serveRecorded(ctx, daemons); err != nil {
		return err
	}
	if err := s.startSwitch(ctx, daemons); err != nil {
		return err
	}
	return s.run(ctx, s.options.Runtime, daemons.controller())
}

// serveRecorded serves the copy of the node's OVS database for ovn-controller.
func (s *Scratch) serveRecorded(ctx context.Context, daemons *nodeDaemons) error {
	remarks, err := replica.Copy(ctx, s.options.Runtime, workdir.OVS, daemons.Conf, daemons.conf, daemons.recordedDir())
	daemons.remarks = append(daemons.remarks, remarks...)
	if err != nil {
		return err
	}
	if err := s.run(ctx, s.options.Runtime, daemons.recordedServer()); err != nil {
		return err
	}
	if daemons.Lists != "" {
		remarks, err := replica.SetEphemeral(ctx, s.options.Runtime, daemons.recordedServer(), daemons.Lists)
		daemons.remarks = append(daemons.remarks, remarks...)
		if err != nil {
			return err
		}
	}
	if daemons.db, err = ovsdb.Connect(ctx, socket(daemons.recordedServer()), ovsdb.OVS); err != nil {
		return err
	}
	return s.connectController(ctx, daemons)
}

// connectController makes the node's OVS database lead ovn-controller to the copy of the
// SB database, and to nothing else.
func (s *Scratch) connectController(ctx context.Context, daemons *nodeDaemons) error {
	row, err := singleRow(ctx, daemons.db, "Open_vSwitch", "external_ids")
	if err != nil {
		return err
	}
	ids := ovn.Settings(row.Map("external_ids"))
	daemons.Chassis = cmp.Or(daemons.Chassis, ids.Chassis())
	if daemons.Chassis == "" {
		return fmt.Errorf("%s names no system-id, by which ovn-controller finds its chassis", daemons.Conf)
	}
	ids["system-id"] = daemons.Chassis
	daemons.bridge = ids.Bridge()
	// Each of these can have the suffix of a chassis.
	replaced := []string{"ovn-remote", "ovn-monitor-all", "ovn-bridge-remote"}
	maps.DeleteFunc(ids, func(key, _ string) bool {
		for _, prefix := range replaced {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return false
	})
	ids["ovn-remote"] = "unix:" + readerSocket(s.options.Dir)
	if s.options.Northd {
		ids["ovn-remote"] = "unix:" + s.SBSocket()
	}
	ids["ovn-monitor-all"] = "true"
	columns := ovsdb.Columns{"external_ids": map[string]string(ids)}
	if daemons.db.HasColumn("Open_vSwitch", "ssl") {
		columns["ssl"] = nil // it names files of the live host
	}
	if err := daemons.db.Transact(ctx, ovsdb.Update("Open_vSwitch", row.UUID, columns)); err != nil {
		return err
	}
	return errors.Join(s.checkChassis(ctx, daemons), daemons.readInterfaces(ctx), daemons.readSessions(ctx))
}

// checkChassis returns an error if ovn-controller could install no flows: a chassis that
// the SB database lacks can't be added to one that can only be read.
func (s *Scratch) checkChassis(ctx context.Context, daemons *nodeDaemons) error {
	rows, err := s.sb.Select(ctx, "Chassis", "name")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.String("name") == daemons.Chassis {
			return nil
		}
	}
	if s.options.Northd {
		return nil
	}
	return fmt.Errorf("%w: %q, the system-id of the node, is not among the %d chassis of the OVN SB database, which may belong to another deployment", ErrNoChassis, daemons.Chassis, len(rows))
}

// ErrNoChassis is wrapped if the SB database does not know the chassis of a node.
var ErrNoChassis = errors.New("no such chassis")

// readInterfaces records which interfaces were there, and the number that ovn-controller
// has seen last.
func (p *nodeDaemons) readInterfaces(ctx context.Context) error {
	rows, err := p.db.Select(ctx, "Interface", "name")
	if err != nil {
		return err
	}
	p.existing, p.last = map[string]bool{}, map[string]int{}
	for _, row := range rows {
		p.existing[row.UUID] = true
	}
	if _, err := p.numberPorts(ctx); err != nil { // numbers none: all exist
		return err
	}
	bridge, err := p.integrationBridge(ctx)
	if err != nil {
		return err
	}
	p.seen, _ = strconv.Atoi(bridge.Map("external_ids")[seenConfig])
	return nil
}

// integrationBridge returns the row of the integration bridge.
func (p *nodeDaemons) integrationBridge(ctx context.Context) (ovsdb.Row, error) {
	rows, err := p.db.Select(ctx, "Bridge", "name", "external_ids")
	if err != nil {
		return ovsdb.Row{}, err
	}
	for _, row := range rows {
		if row.String("name") == p.bridge {
			return row, nil
		}
	}
	return ovsdb.Row{}, fmt.Errorf("its OVS database has no integration bridge %q", p.bridge)
}

// startSwitch starts an ovs-vswitchd with nothing but the integration bridge. Its ports
// are not needed: ovn-controller takes their numbers from the database as recorded, and
// ovs-vswitchd accepts flows for ports that do not exist.
func (s *Scratch) startSwitch(ctx context.Context, daemons *nodeDaemons) error {
	rt := s.options.Runtime
	schema, err := replica.Schema(ctx, rt, workdir.OVS)
	if err != nil {
		return fmt.Errorf("the schema of Open vSwitch is needed for a switch: %w", err)
	}
	if _, err := rt.Tool(ctx, daemons.switchDir(), nil, "ovsdb-tool", "create", daemons.rules, schema.Path()); err != nil {
		return err
	}
	if err := s.run(ctx, rt, daemons.switchServer()); err != nil {
		return err
	}
	db, err := ovsdb.Connect(ctx, socket(daemons.switchServer()), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	var protocols []string
	for _, version := range openflow.Versions() {
		protocols = append(protocols, version.String())
	}
	err = db.Transact(ctx,
		ovsdb.Insert("Interface", "interface", ovsdb.Columns{"name": daemons.bridge, "type": "internal"}),
		ovsdb.Insert("Port", "port", ovsdb.Columns{"name": daemons.bridge, "interfaces": ovsdb.Ref{Name: "interface"}}),
		ovsdb.Insert("Bridge", "bridge", ovsdb.Columns{"name": daemons.bridge, "ports": ovsdb.Ref{Name: "port"}, "fail_mode": "secure", "protocols": protocols}),
		ovsdb.Insert("Open_vSwitch", "", ovsdb.Columns{"bridges": ovsdb.Ref{Name: "bridge"},
			"other_config": map[string]string{"n-handler-threads": "1", "n-revalidator-threads": "1"}}))
	if err != nil {
		return err
	}
	return s.run(ctx, rt, daemons.vswitchd())
}

// run starts a daemon, and limits its memory where that is possible.
func (s *Scratch) run(ctx context.Context, rt runtime.Runtime, d runtime.Daemon) error {
	if err := rt.Start(ctx, d); err != nil {
		if errors.Is(err, runtime.ErrNotInstalled) {
			return fmt.Errorf("%w; flows can only be computed with OVN of the node's own release: install it, or add an image that has it (ovs-offline image add)", err)
		}
		if errors.Is(err, runtime.ErrEnded) {
			return &EndedError{d.Program, err.Error()}
		}
		return err
	}
	if d.Program == "ovsdb-server" {
		return nil // its memory follows the size of its file
	}
	state, err := rt.State(ctx, d)
	if err != nil {
		return err
	}
	_, _ = daemon.LimitMemory(state.PID, s.options.memoryAllowance) // without a limit the result is the same
	return nil
}

// singleRow returns the row of a table that has exactly one.
func singleRow(ctx context.Context, db *ovsdb.Client, table string, columns ...string) (ovsdb.Row, error) {
	if len(columns) == 0 {
		columns = []string{"nb_cfg"}
	}
	rows, err := db.Select(ctx, table, columns...)
	if err != nil {
		return ovsdb.Row{}, err
	}
	if len(rows) != 1 {
		return ovsdb.Row{}, fmt.Errorf("the database has %d rows of %s", len(rows), table)
	}
	return rows[0], nil
}
