package replica

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
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
	if _, err := os.Stat(s.wd.Database(workdir.OVS)); err != nil && !s.made {
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
	if !s.made {
		if _, _, err := file.Standalone(ctx, s.wd.Database(workdir.OVS), s.wd.RecordedCopy()); err != nil {
			return err
		}
	}
	if err := s.run(ctx, recordedServer(s.wd)); err != nil {
		return err
	}
	remarks, err := SetEphemeral(ctx, s.rt, recordedServer(s.wd), s.wd.Recorded(""))
	for _, remark := range remarks {
		s.report.Remark(remark)
	}
	if err != nil {
		return err
	}
	return s.makeReadOnly(ctx)
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
