package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// The OVS database is served twice: once for the replica's ovs-vswitchd, which
// overwrites what the live one had said, and once as it was recorded. No file
// keeps statistics, link states, MACs and the like; what `ovs-vsctl list` said
// of them on the node is put back, and then the copy is closed to writers.

const roleRecorded = "ovsdb-server-recorded"

// recordedServer serves the OVS database as it was recorded.
func recordedServer(wd *workdir.Dir) runtime.Daemon {
	return runtime.Daemon{
		Role: roleRecorded, Program: "ovsdb-server",
		Args:   []string{wd.RecordedCopy(), "--remote=punix:" + wd.RecordedSocket()},
		RunDir: wd.VarRunRecorded(), Log: wd.Log(roleRecorded),
	}
}

// serveRecorded starts that server, fills it and closes it to writers. What goes
// wrong in it costs this view alone.
func (s *starter) serveRecorded(ctx context.Context) {
	if _, err := os.Stat(s.wd.Database(workdir.OVS)); err != nil {
		return // there is nothing but flows
	}
	if err := s.tryServeRecorded(ctx); err != nil && ctx.Err() == nil {
		s.remark("the database as recorded is not served beside the running one: " + err.Error())
		err = s.rt.Stop(ctx, recordedServer(s.wd))
		if err == nil {
			err = os.RemoveAll(s.wd.VarRunRecorded()) // status would expect its server there
		}
		if err != nil {
			s.remark(err.Error())
		}
	}
}

func (s *starter) tryServeRecorded(ctx context.Context) error {
	for _, dir := range []string{filepath.Dir(s.wd.RecordedCopy()), s.wd.VarRunRecorded()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if _, _, err := file.Standalone(ctx, s.wd.Database(workdir.OVS), s.wd.RecordedCopy()); err != nil {
		return err
	}
	if err := s.run(ctx, recordedServer(s.wd)); err != nil {
		return err
	}
	if err := s.fillRecorded(ctx); err != nil {
		return err
	}
	return s.closeRecorded(ctx)
}

// fillRecorded puts ephemeral columns back.
func (s *starter) fillRecorded(ctx context.Context) error {
	db, err := ovsdb.Connect(ctx, s.wd.RecordedSocket(), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, l := range []struct{ table, file string }{
		{"Open_vSwitch", workdir.RecordedListOVS}, {"Bridge", workdir.RecordedListBridge},
		{"Port", workdir.RecordedListPort}, {"Interface", workdir.RecordedListInterface}} {
		sets, err := s.sets(db, l.table, s.wd.Recorded(l.file))
		if err != nil {
			return err
		}
		if failed := s.set(ctx, sets); failed > 0 {
			s.remark(fmt.Sprintf("%d rows of table %s are in the recorded database without what %s tells of them", failed, l.table, l.file))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// sets are ovs-vsctl's commands, one a row, that set a table's ephemeral
// columns to what was listed.
func (s *starter) sets(db *ovsdb.Client, table, path string) ([][]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := ovsdb.Listing(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var sets [][]string
	for _, r := range records {
		set := []string{"--", "--if-exists", "set", table, r.UUID}
		for _, c := range r.Columns {
			if db.Ephemeral(table, c.Column) && c.Text != "[]" && c.Text != "{}" {
				set = append(set, c.Column+"="+c.Text)
			}
		}
		if len(set) > 5 {
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// set runs commands, a hundred in one ovs-vsctl, and splits what fails until
// the bad ones stand alone. It returns how many those are.
func (s *starter) set(ctx context.Context, sets [][]string) (failed int) {
	const most = 100
	switch {
	case len(sets) == 0 || ctx.Err() != nil:
		return 0
	case len(sets) > most:
		return s.set(ctx, sets[:most]) + s.set(ctx, sets[most:])
	}
	argv := []string{"ovs-vsctl", "--no-wait", "--db=unix:" + s.wd.RecordedSocket()}
	for _, set := range sets {
		argv = append(argv, set...)
	}
	if _, err := s.rt.Tool(ctx, s.wd.VarRunRecorded(), nil, argv...); err == nil {
		return 0
	}
	if len(sets) == 1 {
		return 1
	}
	middle := len(sets) / 2
	return s.set(ctx, sets[:middle]) + s.set(ctx, sets[middle:])
}

// closeRecorded makes the server the backup of one that never is there: a
// backup takes no transactions (ovsdb-server(1), "Active-Backup").
func (s *starter) closeRecorded(ctx context.Context) error {
	nobody := "unix:" + filepath.Join(s.wd.VarRunRecorded(), "no-active-server")
	for _, command := range [][]string{{"ovsdb-server/set-active-ovsdb-server", nobody}, {"ovsdb-server/connect-active-ovsdb-server"}} {
		if _, err := s.askRecorded(ctx, command...); err != nil {
			return err
		}
	}
	out, err := s.askRecorded(ctx, "ovsdb-server/sync-status")
	if err == nil && !strings.Contains(string(out), "state: backup") {
		err = fmt.Errorf("it can be written to: %s", strings.TrimSpace(string(out)))
	}
	return err
}

// askRecorded runs a command of that server.
func (s *starter) askRecorded(ctx context.Context, argv ...string) ([]byte, error) {
	return daemon.Ask(ctx, s.rt, s.wd.VarRunRecorded(), "ovsdb-server", argv...)
}
