package k8s

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/e2e/k8s/cluster"
)

// smallNode is a live node that is asked in little time: real daemons, one
// bridge with the given flows, a group and a meter, and OVN databases that
// hold next to nothing. Tests that ask many times have it.
func smallNode(t *testing.T, flows string) *lab {
	t.Helper()
	dir, err := os.MkdirTemp(scratch(), "small-")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{dir: dir}
	if err := l.startSmall(flows); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) startSmall(flows string) error {
	ovs, ovn := filepath.Join(l.dir, "ovs"), filepath.Join(l.dir, "ovn")
	for _, dir := range []string{ovs, ovn} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	conf, db := filepath.Join(ovs, "conf.db"), filepath.Join(ovs, "db.sock")
	if err := run("ovsdb-tool", "create", conf, "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return err
	}
	if err := startDaemon(ovs, "ovsdb-server", conf, "--remote=punix:"+db, "--unixctl="+filepath.Join(ovs, "ovsdb-server.ctl")); err != nil {
		return err
	}
	if err := run("ovs-vsctl", "--db=unix:"+db, "--no-wait", "init"); err != nil {
		return err
	}
	if err := startDaemon(ovs, "ovs-vswitchd", "--enable-dummy=system", "unix:"+db); err != nil {
		return err
	}
	if err := l.populate(db, flows); err != nil {
		return err
	}
	return startOVN(ovn)
}

// populate gives the node a bridge.
func (l *lab) populate(db, flows string) error {
	if err := run("ovs-vsctl", "--timeout=30", "--db=unix:"+db, "add-br", "br-int", "--", "set", "Bridge", "br-int", "fail_mode=secure",
		"--", "add-port", "br-int", "pod1", "--", "add-port", "br-int", "pod2"); err != nil {
		return err
	}
	bridge, file := "unix:"+filepath.Join(l.dir, "ovs/br-int.mgmt"), filepath.Join(l.dir, "flows")
	if err := os.WriteFile(file, []byte(flows), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"add-meter", bridge, "meter=1,kbps,band=type=drop,rate=100"},
		{"add-group", bridge, "group_id=1,type=select,bucket=output:1,bucket=output:2"},
		{"add-tlv-map", bridge, "{class=0x102,type=0x80,len=4}->tun_metadata0"},
		{"add-flows", bridge, file},
	} {
		if err := run("ovs-ofctl", append([]string{"-O", "OpenFlow15"}, args...)...); err != nil {
			return err
		}
	}
	return os.Remove(file)
}

// startOVN serves empty OVN databases, but for a name in each.
func startOVN(dir string) error {
	var files []string
	for _, db := range []string{"nb", "sb"} {
		file := filepath.Join(dir, "ovn"+db+"_db.db")
		if err := run("ovsdb-tool", "create", file, "/usr/share/ovn/ovn-"+db+".ovsschema"); err != nil {
			return err
		}
		files = append(files, file, "--remote=punix:"+filepath.Join(dir, "ovn"+db+"_db.sock"))
	}
	if err := startDaemon(dir, "ovsdb-server", append(files, "--unixctl="+filepath.Join(dir, "ovsdb-server.ctl"))...); err != nil {
		return err
	}
	if err := run("ovn-nbctl", "--timeout=30", "--db=unix:"+filepath.Join(dir, "ovnnb_db.sock"), "ls-add", "net1"); err != nil {
		return err
	}
	return run("ovn-sbctl", "--timeout=30", "--db=unix:"+filepath.Join(dir, "ovnsb_db.sock"), "chassis-add", "node1", "geneve", "127.0.0.2")
}

// startDaemon starts a daemon in a network of its own. It ends with the tests.
func startDaemon(dir, program string, args ...string) error {
	pidfile := filepath.Join(dir, program+".pid")
	atExit(func() { end(pidfile) })
	argv := append(cluster.Unshare("--net", program), daemon(dir, pidfile)...)
	command := exec.Command("unshare", append(argv, args...)...)
	command.Env = append(os.Environ(), "OVS_RUNDIR="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// someFlows are n flows, each of the given number of actions and some 60 bytes more.
func someFlows(n, actions int) string {
	one := strings.Repeat(",set_field:2001:db8:1111:2222:3333:4444:5555:6666->ipv6_src", actions)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "table=%d,priority=%d,ipv6,in_port=1,ipv6_dst=fd00::%x,actions=output:2%s\n", i%8, i%100+1, i+1, one)
	}
	return b.String()
}
