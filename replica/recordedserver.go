package replica

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// The OVS database is served twice: once for the replica's ovs-vswitchd, which
// overwrites what the node's ovs-vswitchd wrote, and once as it was recorded.
// Database files hold no ephemeral columns (statistics, link states, MAC addresses in
// use). These are set to the values that `ovs-vsctl list` printed on the node, and then
// the second server is made read-only.

const roleRecorded = "ovsdb-server-recorded"

// recordedServer returns the ovsdb-server of the OVS database as it was recorded.
func recordedServer(wd *workdir.Dir) runtime.Daemon {
	return runtime.Daemon{
		Role: roleRecorded, Program: "ovsdb-server",
		Args:   []string{wd.RecordedCopy(), "--remote=punix:" + wd.RecordedSocket()},
		RunDir: wd.VarRunRecorded(), Log: wd.Log(roleRecorded),
	}
}

// serveRecorded starts the server of the OVS database as recorded. A failure is only a
// remark, because the replica works without it.
func (s *starter) serveRecorded(ctx context.Context) {
	if _, err := os.Stat(s.wd.Database(workdir.OVS)); err != nil {
		return // no database was collected
	}
	if err := s.tryServeRecorded(ctx); err != nil && ctx.Err() == nil {
		s.report.Remark("the database as recorded is not served beside the running one: " + err.Error())
		err = s.rt.Stop(ctx, recordedServer(s.wd))
		if err == nil {
			err = os.RemoveAll(s.wd.VarRunRecorded()) // otherwise status would expect its server
		}
		if err != nil {
			s.report.Remark(err.Error())
		}
	}
}

func (s *starter) tryServeRecorded(ctx context.Context) error {
	if err := makeFolders(filepath.Dir(s.wd.RecordedCopy()), s.wd.VarRunRecorded()); err != nil {
		return err
	}
	if _, _, err := file.Standalone(ctx, s.wd.Database(workdir.OVS), s.wd.RecordedCopy()); err != nil {
		return err
	}
	if err := s.run(ctx, recordedServer(s.wd)); err != nil {
		return err
	}
	if err := s.restoreEphemeral(ctx); err != nil {
		return err
	}
	return s.makeReadOnly(ctx)
}

// restoreEphemeral sets the ephemeral columns to the printed values.
func (s *starter) restoreEphemeral(ctx context.Context) error {
	db, err := ovsdb.Connect(ctx, s.wd.RecordedSocket(), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	var all []setCommand
	for _, l := range []struct{ table, file string }{
		{"Open_vSwitch", workdir.RecordedListOVS}, {"Bridge", workdir.RecordedListBridge},
		{"Port", workdir.RecordedListPort}, {"Interface", workdir.RecordedListInterface}} {
		commands, err := s.setCommands(db, l.table, l.file)
		if err != nil {
			return err
		}
		all = append(all, commands...)
	}
	const batch = 100 // rows per run of ovs-vsctl, whose command line has a limited length
	failed := map[string]int{}
	for commands := range slices.Chunk(all, batch) {
		s.set(ctx, commands, failed)
	}
	for file, rows := range failed {
		s.report.Remark(fmt.Sprintf("the recorded database lacks the values that %s has for %d rows", file, rows))
	}
	return ctx.Err()
}

// setCommand is a command of ovs-vsctl that sets the ephemeral columns of one row.
type setCommand struct {
	file string // with the values
	argv []string
}

// setCommands returns the commands for the rows in a file of `ovs-vsctl list`.
func (s *starter) setCommands(db *ovsdb.Client, table, name string) ([]setCommand, error) {
	f, ok, err := workdir.OpenCollected(s.wd.Recorded(name))
	if !ok {
		return nil, err
	}
	defer f.Close()
	records, err := ovsdb.Listing(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	var commands []setCommand
	for _, r := range records {
		var values []string
		for _, c := range r.Columns {
			if db.Ephemeral(table, c.Column) && c.Text != "[]" && c.Text != "{}" {
				values = append(values, c.Column+"="+c.Text)
			}
		}
		if len(values) > 0 {
			commands = append(commands, setCommand{name, append([]string{"--", "--if-exists", "set", table, r.UUID}, values...)})
		}
	}
	return commands, nil
}

// set runs commands in one ovs-vsctl, which applies all or none of them. If that fails,
// it divides the list until the failing commands are known, and counts them by file.
func (s *starter) set(ctx context.Context, commands []setCommand, failed map[string]int) {
	argv := []string{"ovs-vsctl", "--no-wait", "--db=unix:" + s.wd.RecordedSocket()}
	for _, c := range commands {
		argv = append(argv, c.argv...)
	}
	_, err := s.rt.Tool(ctx, s.wd.VarRunRecorded(), nil, argv...)
	switch {
	case err == nil || ctx.Err() != nil:
	case len(commands) == 1:
		failed[commands[0].file]++
	default:
		middle := len(commands) / 2
		s.set(ctx, commands[:middle], failed)
		s.set(ctx, commands[middle:], failed)
	}
}

// makeReadOnly makes the server the backup of a server that does not exist: a backup
// server accepts no transactions (ovsdb-server(1), "Active-Backup").
func (s *starter) makeReadOnly(ctx context.Context) error {
	active := "unix:" + filepath.Join(s.wd.VarRunRecorded(), "no-active-server")
	var out []byte
	for _, command := range [][]string{{"ovsdb-server/set-active-ovsdb-server", active}, {"ovsdb-server/connect-active-ovsdb-server"}, {"ovsdb-server/sync-status"}} {
		var err error
		if out, err = daemon.Ask(ctx, s.rt, s.wd.VarRunRecorded(), "ovsdb-server", command...); err != nil {
			return err
		}
	}
	if !strings.Contains(string(out), "state: backup") {
		return fmt.Errorf("it is not read-only: %s", strings.TrimSpace(string(out)))
	}
	return nil
}
