package replica

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// roleVswitchd is the role of ovs-vswitchd.
const roleVswitchd = "ovs-vswitchd"

func serverRole(kind workdir.Kind) string { return "ovsdb-server-" + string(kind) }

// server returns the ovsdb-server of a database. It has no --remote=db:, so it listens
// only on its socket and connects to no address in the database.
func server(wd *workdir.Dir, kind workdir.Kind) runtime.Daemon {
	return runtime.Daemon{
		Role: serverRole(kind), Program: "ovsdb-server",
		Args:   []string{wd.WorkingCopy(kind), "--remote=punix:" + wd.Socket(kind)},
		RunDir: wd.VarRun(kind), Log: wd.Log(serverRole(kind)),
	}
}

// vswitchd returns an ovs-vswitchd with a dummy datapath and with its own tunnel ports.
func vswitchd(wd *workdir.Dir) runtime.Daemon {
	return runtime.Daemon{
		Role: roleVswitchd, Program: "ovs-vswitchd",
		Args:   []string{"--enable-dummy=system", "unix:" + wd.Socket(workdir.OVS)},
		RunDir: wd.VarRun(workdir.OVS), Log: wd.Log(roleVswitchd),
	}
}

// StopSwitch stops the ovs-vswitchd of a replica. The servers of its databases go on running.
func StopSwitch(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) error {
	return rt.Stop(ctx, vswitchd(wd))
}

// daemons returns all daemons that a replica of the workdir can have, in the order
// in which they are stopped: ovs-vswitchd before its server.
func daemons(wd *workdir.Dir) []runtime.Daemon {
	list := []runtime.Daemon{vswitchd(wd), recordedServer(wd)}
	for _, kind := range workdir.Kinds() {
		list = append(list, server(wd, kind))
	}
	return list
}

// schemaPaths returns the paths at which packages, or a build from source, install
// the schema of a database.
func schemaPaths(rt runtime.Runtime, kind workdir.Kind) (paths []string) {
	installed := map[workdir.Kind]struct{ program, name string }{
		workdir.OVS: {"ovs-vswitchd", "openvswitch/vswitch.ovsschema"},
		workdir.NB:  {"ovn-nbctl", "ovn/ovn-nb.ovsschema"},
		workdir.SB:  {"ovn-sbctl", "ovn/ovn-sb.ovsschema"},
	}[kind]
	for _, folder := range rt.Shares(installed.program) {
		paths = append(paths, filepath.Join(folder, installed.name))
	}
	return paths
}

// removeRuntimeFiles removes the files that daemons and Start leave, and the folders
// that are then empty.
func removeRuntimeFiles(wd *workdir.Dir) {
	for _, root := range []string{wd.Run(), filepath.Dir(wd.VarRun(workdir.OVS))} {
		var folders []string
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			switch {
			case err != nil:
			case entry.IsDir():
				folders = append(folders, path)
			case isRuntimeFile(entry.Name()):
				os.Remove(path)
			}
			return nil
		})
		for _, folder := range slices.Backward(folders) {
			os.Remove(folder) // fails if the folder holds a file of another origin
		}
	}
	os.Remove(wd.ReplicaFile())
	os.Remove(wd.ReportFile())
	entries, _ := os.ReadDir(wd.Path())
	for _, entry := range entries {
		if temporary.MatchString(entry.Name()) {
			os.Remove(filepath.Join(wd.Path(), entry.Name()))
		}
	}
}

// temporary matches the names of unfinished files that a killed start leaves:
// replica.json, report.json or a working copy (package workdir, file.Standalone).
var temporary = lazyregexp.New(`^\.(tmp-|.*\.db\.)[0-9]+$`)

// isRuntimeFile reports whether daemons or this package make files of that name.
func isRuntimeFile(name string) bool {
	extensions := []string{".db", ".~lock~", ".log", ".pid", ".ctl", ".sock", ".mgmt", ".snoop", ".tmp"}
	return slices.Contains(extensions, filepath.Ext(name)) || temporary.MatchString(name)
}
