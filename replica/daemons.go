package replica

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
)

// roleVswitchd is ovs-vswitchd's role.
const roleVswitchd = "ovs-vswitchd"

func serverRole(k workdir.Kind) string { return "ovsdb-server-" + string(k) }

// server is the ovsdb-server of a kind. Without --remote=db: it listens on its
// socket alone and dials nobody, whatever the database says.
func server(wd *workdir.Dir, k workdir.Kind) runtime.Daemon {
	return runtime.Daemon{
		Role: serverRole(k), Program: "ovsdb-server",
		Args:   []string{wd.WorkingCopy(k), "--remote=punix:" + wd.Socket(k)},
		RunDir: wd.VarRun(k), Log: wd.Log(serverRole(k)),
	}
}

// vswitchd replaces the system's datapath by a dummy, and leaves tunnels be.
func vswitchd(wd *workdir.Dir) runtime.Daemon {
	return runtime.Daemon{
		Role: roleVswitchd, Program: "ovs-vswitchd",
		Args:   []string{"--enable-dummy=system", "unix:" + wd.Socket(workdir.OVS)},
		RunDir: wd.VarRun(workdir.OVS), Log: wd.Log(roleVswitchd),
	}
}

// daemons are all that a replica of the workdir can have, in the order in which
// they end: ovs-vswitchd before the server it talks to.
func daemons(wd *workdir.Dir) []runtime.Daemon {
	list := []runtime.Daemon{vswitchd(wd), recordedServer(wd)}
	for _, k := range workdir.Kinds() {
		list = append(list, server(wd, k))
	}
	return list
}

// databaseName returns the name of the schema of a kind's database.
func databaseName(k workdir.Kind) string { return k.Schema() }

// schemas are where the packages, or a build from source, put the schema of a kind.
func schemas(k workdir.Kind) []string {
	names := map[workdir.Kind]string{workdir.OVS: "openvswitch/vswitch.ovsschema", workdir.NB: "ovn/ovn-nb.ovsschema", workdir.SB: "ovn/ovn-sb.ovsschema"}
	return []string{filepath.Join("/usr/share", names[k]), filepath.Join("/usr/local/share", names[k])}
}

// schema is the first of them that is there; the error tells why ovsdb-tool
// reads none.
func (s *starter) schema(ctx context.Context, k workdir.Kind) (string, error) {
	var failed error
	for _, path := range schemas(k) {
		_, err := s.tool(ctx, "ovsdb-tool", "schema-name", path)
		if err == nil {
			return path, nil
		}
		failed = cmp.Or(failed, err)
	}
	return "", failed
}

// tool runs a tool that needs no daemon.
func (s *starter) tool(ctx context.Context, argv ...string) ([]byte, error) {
	return s.rt.Tool(ctx, s.wd.Run(), nil, argv...)
}

// removeRuntimeFiles removes what daemons leave, and the folders that are empty then.
func removeRuntimeFiles(wd *workdir.Dir) {
	for _, root := range []string{wd.Run(), filepath.Dir(wd.VarRun(workdir.OVS))} {
		var folders []string
		_ = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
			switch {
			case err != nil:
			case e.IsDir():
				folders = append(folders, path)
			case isRuntimeFile(e.Name()):
				os.Remove(path)
			}
			return nil
		})
		for i := len(folders) - 1; i >= 0; i-- {
			os.Remove(folders[i]) // fails where a file of somebody else's is left
		}
	}
	os.Remove(wd.ReplicaFile())
	os.Remove(wd.ReportFile())
	entries, _ := os.ReadDir(wd.Path())
	for _, e := range entries {
		if temporary.MatchString(e.Name()) {
			os.Remove(filepath.Join(wd.Path(), e.Name()))
		}
	}
}

// temporary matches what a killed start leaves: replica.json, report.json or a
// working copy before it has its name (workdir.WriteFile, file.Standalone).
var temporary = regexp.MustCompile(`^\.(tmp-|.*\.db\.)[0-9]+$`)

// isRuntimeFile tells the files that daemons and this package make.
func isRuntimeFile(name string) bool {
	for _, suffix := range []string{".db", ".~lock~", ".log", ".pid", ".ctl", ".sock", ".mgmt", ".snoop", ".tmp"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return temporary.MatchString(name)
}
