package k8s

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ovs-offline/test/e2e/k8s/cluster"
)

// lab is a live node with its traces and dumps.
type lab struct {
	dir     string
	packets string // see `lab oracle`
	live    string
	truth   string
}

var labs = map[string]func() (*lab, error){
	"kubernetes": sync.OnceValues(func() (*lab, error) { return bringUp("kubernetes") }),
	"openstack":  sync.OnceValues(func() (*lab, error) { return bringUp("openstack") }),
}

func liveNode(t *testing.T, topology string) *lab {
	t.Helper()
	l, err := labs[topology]()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func bringUp(topology string) (*lab, error) {
	l := &lab{dir: filepath.Join(scratch(), "lab-"+topology)}
	oracle := filepath.Join(scratch(), "oracle-"+topology)
	atExit(func() { run(labScript, "down", l.dir) })
	if err := run(labScript, "up", topology, l.dir); err != nil {
		return nil, err
	}
	l.packets, l.live, l.truth = filepath.Join(oracle, "packets"), filepath.Join(oracle, "live"),
		filepath.Join(oracle, "truth")
	return l, run(labScript, "oracle", l.dir, oracle)
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// ovs returns the mounts of a container that runs the tools of OVS.
func (l *lab) ovs() []cluster.Mount {
	return []cluster.Mount{{Host: filepath.Join(l.dir, "ovs"), Container: "/run/openvswitch"}}
}

// ovsFile returns the mounts of ovs, and that of the OVS database's file.
func (l *lab) ovsFile() []cluster.Mount {
	return append(l.ovs(), cluster.Mount{Host: filepath.Join(l.dir, "ovs/conf.db"), Container: "/etc/openvswitch/conf.db"})
}

// ovn returns the mounts of a container that serves the OVN databases.
func (l *lab) ovn() []cluster.Mount {
	return []cluster.Mount{{Host: filepath.Join(l.dir, "ovn"), Container: "/run/ovn"}}
}

// raft is a cluster of two servers, made from a database of the lab.
type raft struct{ leader, follower string } // folders, each with the socket that a pod mounts

var rafts sync.Map // TOPOLOGY -> func() (map[string]raft, error)

// clustered returns clusters of a lab node's OVN databases, "nb" and "sb".
func clustered(t *testing.T, topology string) map[string]raft {
	t.Helper()
	l := liveNode(t, topology)
	once, _ := rafts.LoadOrStore(topology, sync.OnceValues(func() (map[string]raft, error) { return l.raise(topology) }))
	r, err := once.(func() (map[string]raft, error))()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l *lab) raise(topology string) (map[string]raft, error) {
	rafts := map[string]raft{}
	for db, name := range map[string]string{"nb": "OVN_Northbound", "sb": "OVN_Southbound"} {
		dir := filepath.Join(scratch(), "raft-"+topology+"-"+db)
		r := raft{leader: filepath.Join(dir, "0"), follower: filepath.Join(dir, "1")}
		for _, folder := range []string{r.leader, r.follower} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return nil, err
			}
		}
		backup, err := exec.Command("ovsdb-client", "backup", "unix:"+filepath.Join(l.dir, "ovn", "ovn"+db+"_db.sock"),
			name).Output()
		if err != nil {
			return nil, fmt.Errorf("backup of %s: %w", name, err)
		}
		snapshot := filepath.Join(dir, "snapshot.db")
		if err := os.WriteFile(snapshot, backup, 0o600); err != nil {
			return nil, err
		}
		members := []string{"unix:" + filepath.Join(r.leader, "raft"), "unix:" + filepath.Join(r.follower, "raft")}
		if err := run("ovsdb-tool", "create-cluster", filepath.Join(r.leader, "db"), snapshot, members[0]); err != nil {
			return nil, err
		}
		if err := serve(r.leader, db, name); err != nil {
			return nil, err
		}
		if err := run("ovsdb-tool", "join-cluster", filepath.Join(r.follower, "db"), name, members[1],
			members[0]); err != nil {
			return nil, err
		}
		if err := serve(r.follower, db, name); err != nil {
			return nil, err
		}
		rafts[db] = r
	}
	return rafts, nil
}

// serve starts the server of a cluster's member and waits until it has joined.
func serve(dir, db, name string) error {
	pidfile, socket := filepath.Join(dir, "pid"), filepath.Join(dir, "ovn"+db+"_db.sock")
	atExit(func() { end(pidfile) })
	err := run("ovsdb-server", append(daemon(dir, pidfile), filepath.Join(dir, "db"), "--remote=punix:"+socket,
		"--unixctl="+filepath.Join(dir, "ctl"))...)
	if err != nil {
		return err
	}
	return run("ovsdb-client", "--timeout=30", "wait", "unix:"+socket, name, "connected")
}

// daemon returns the common options of daemons.
func daemon(dir, pidfile string) []string {
	return []string{"--pidfile=" + pidfile, "--log-file=" + strings.TrimSuffix(pidfile, ".pid") + ".log", "-vconsole:off",
		"-vsyslog:off", "--no-chdir", "--detach"}
}

// end ends the daemon of a pid file.
func end(pidfile string) {
	text, err := os.ReadFile(pidfile)
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		syscall.Kill(pid, syscall.SIGTERM)
	}
}
