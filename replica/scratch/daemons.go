package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// nodeDaemons is the folders and daemons of one node.
type nodeDaemons struct {
	Recorded
	dir   *workdir.Dir
	name  string // of its folders and roles: a node's name can hold anything
	conf  string // the copy of its OVS database for ovn-controller
	rules string // the database of the ovs-vswitchd that takes the flows

	db       *ovsdb.Client    // of conf
	bridge   string           // the integration bridge
	existing map[string]bool  // the UUIDs of the recorded interfaces
	last     map[string]int   // the highest number that a port has had, by the UUID of the bridge
	numbers  map[portName]int // of the interfaces that the bridges had last
	seen     int              // the latest nb_cfg whose flows are installed
	answered map[string]bool  // whether a recorded BFD session was up, by the name of the other chassis
	sessions []Session
	remarks  []string
}

const placePrefix = "node"

func newNodeDaemons(dir *workdir.Dir, i int, node Recorded) *nodeDaemons {
	name := placePrefix + strconv.Itoa(i)
	databases := filepath.Join(dir.Run(), name)
	return &nodeDaemons{Recorded: node, dir: dir, name: name,
		conf: filepath.Join(databases, "conf.db"), rules: filepath.Join(databases, "switch.db")}
}

// recordedDir is the RunDir of the server of the OVS database as recorded, and switchDir
// the folder of all other daemons of the node: ovn-controller looks for the sockets of bridges
// in its own.
func (p *nodeDaemons) recordedDir() string { return filepath.Join(p.dir.VarRuns(), p.name+"-recorded") }
func (p *nodeDaemons) switchDir() string   { return filepath.Join(p.dir.VarRuns(), p.name) }

func (p *nodeDaemons) folders() []string {
	return []string{filepath.Dir(p.conf), p.recordedDir(), p.switchDir()}
}

func socket(daemon runtime.Daemon) string { return filepath.Join(daemon.RunDir, "db.sock") }

func (p *nodeDaemons) recordedServer() runtime.Daemon {
	return server(p.dir, p.name+"-recorded", p.conf, p.recordedDir())
}

func (p *nodeDaemons) switchServer() runtime.Daemon {
	return server(p.dir, p.name+"-switch", p.rules, p.switchDir())
}

func (p *nodeDaemons) vswitchd() runtime.Daemon {
	return newDaemon(p.dir, "ovs-vswitchd", p.name, p.switchDir(), "--enable-dummy=system", "unix:"+socket(p.switchServer()))
}

func (p *nodeDaemons) controller() runtime.Daemon {
	return newDaemon(p.dir, "ovn-controller", p.name, p.switchDir(), "unix:"+socket(p.recordedServer()))
}

// daemons returns the daemons of a node, in the order in which they start.
func (p *nodeDaemons) daemons() []runtime.Daemon {
	return []runtime.Daemon{p.recordedServer(), p.switchServer(), p.vswitchd(), p.controller()}
}

// northd returns the ovn-northd.
func northd(dir *workdir.Dir) runtime.Daemon {
	return newDaemon(dir, "ovn-northd", "central", filepath.Join(dir.VarRuns(), "northd"),
		"--ovnnb-db=unix:"+dir.Socket(workdir.NB), "--ovnsb-db=unix:"+dir.Socket(workdir.SB))
}

// centralServer returns the server of an OVN database.
func centralServer(dir *workdir.Dir, kind workdir.Kind) runtime.Daemon {
	return server(dir, string(kind), dir.WorkingCopy(kind), dir.VarRun(kind))
}

// server returns an ovsdb-server that listens only on its socket, and connects to no
// address in the database.
func server(dir *workdir.Dir, name, database, runDir string) runtime.Daemon {
	return newDaemon(dir, "ovsdb-server", name, runDir, database, "--remote=punix:"+filepath.Join(runDir, "db.sock"))
}

func newDaemon(dir *workdir.Dir, program, name, runDir string, args ...string) runtime.Daemon {
	role := fmt.Sprintf("scratch-%s-%s", program, name)
	return runtime.Daemon{Role: role, Program: program, Args: args, RunDir: runDir, Log: dir.Log(role)}
}

// daemonsIn returns all daemons that a Scratch in a folder can have, by the folders in it.
func daemonsIn(dir *workdir.Dir) []runtime.Daemon {
	entries, _ := os.ReadDir(dir.VarRuns()) // without them there is no daemon
	var list []runtime.Daemon
	for _, entry := range entries {
		if i, err := strconv.Atoi(strings.TrimPrefix(entry.Name(), placePrefix)); err == nil && entry.IsDir() {
			list = append(list, newNodeDaemons(dir, i, Recorded{}).daemons()...)
		}
	}
	if len(entries) > 0 {
		list = append(list, northd(dir), centralServer(dir, workdir.NB), centralServer(dir, workdir.SB))
	}
	return list
}
