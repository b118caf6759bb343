package whatif

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"ovs-offline/desired/scratch"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/ovndb"
	"ovs-offline/test/ovs"
)

// BenchmarkChange measures changes of a deployment with more than 13,000 logical flows, on
// one of its nodes. The first computation is reported as "first-s".
func BenchmarkChange(b *testing.B) {
	ovs.Need(b, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd", "ovn-nbctl")
	folder, err := workdir.Find(ovs.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	dir, err := scratch.Lock(folder)
	if err != nil {
		b.Fatal(err)
	}
	defer scratch.Release(dir)
	rt := process.New(process.Options{Folders: dir.RuntimeFolders()})
	began := time.Now()
	s, err := Open(b.Context(), Options{Dir: dir, Runtime: rt, NB: largeNB(b), SB: emptySB(b), Nodes: []Node{{"worker", worker(b)}}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	first := time.Since(began)
	logical := 0
	for range s.now.sb.Rows("Logical_Flow", "priority") {
		logical++
	}
	i := 0
	for b.Loop() {
		i++
		r, err := s.Apply(b.Context(), Change{{"acl-add", "sw0", "to-lport", strconv.Itoa(2000 + i), `outport == "pod-0-1" && ip4`, "drop"}})
		if err != nil {
			b.Fatal(err)
		}
		if r.Nodes[0].Equal() {
			b.Fatal("nothing changed")
		}
	}
	b.ReportMetric(first.Seconds(), "first-s")
	b.ReportMetric(float64(logical), "logical-flows")
	b.ReportMetric(float64(len(s.now.states["worker"].Flows)), "flows")
	for _, program := range []string{"ovn-controller", "ovn-northd", "ovs-vswitchd"} {
		b.ReportMetric(float64(resident(b, dir, program))/1024, program+"-MB")
	}
}

var rss = regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`)

// resident returns the memory of a daemon in KiB.
func resident(b *testing.B, dir *workdir.Dir, program string) int {
	b.Helper()
	pids, err := filepath.Glob(filepath.Join(dir.VarRuns(), "*", program+".pid"))
	if err != nil || len(pids) != 1 {
		b.Fatal(pids, err)
	}
	pid, err := os.ReadFile(pids[0])
	if err != nil {
		b.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", string(pid[:len(pid)-1])))
	if err != nil {
		b.Fatal(err)
	}
	n, err := strconv.Atoi(string(rss.FindSubmatch(status)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

const (
	switches       = 60
	portsPerSwitch = 40
)

// id returns a UUID with a number.
func id(kind, n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind<<24|n, n) }

// largeNB writes a router with switches and their ports, each tenth of which has an ACL.
func largeNB(b *testing.B) string {
	b.Helper()
	f := ovndb.Create(b, ovs.NBSchema)
	rows := ovndb.Rows{"NB_Global": {id(1, 0): {}}, "Logical_Switch": {}, "Logical_Switch_Port": {}, "Logical_Router_Port": {}, "ACL": {}}
	var routerPorts []any
	for n := range switches {
		var ports, acls []any
		for p := range portsPerSwitch {
			uuid, name := id(2, n*portsPerSwitch+p), fmt.Sprintf("pod-%d-%d", n, p)
			address := fmt.Sprintf("0a:58:0a:00:%02x:%02x 10.0.%d.%d", n, p+2, n, p+2)
			rows["Logical_Switch_Port"][uuid] = ovndb.Row{"name": name, "addresses": address, "port_security": address}
			ports = append(ports, ovndb.UUID(uuid))
			if p%10 == 0 {
				acl := id(3, n*portsPerSwitch+p)
				rows["ACL"][acl] = ovndb.Row{"priority": 1001, "direction": "to-lport", "action": "allow-related", "match": fmt.Sprintf("outport == %q && ip4.src == {10.1.0.0/16, 10.2.0.0/16} && tcp.dst == {80, 443}", name)}
				acls = append(acls, ovndb.UUID(acl))
			}
		}
		join, port := id(4, n), id(5, n)
		rows["Logical_Switch_Port"][join] = ovndb.Row{"name": fmt.Sprintf("sw%d-r", n), "type": "router", "addresses": "router", "options": ovndb.Map("router-port", fmt.Sprintf("r-sw%d", n))}
		rows["Logical_Router_Port"][port] = ovndb.Row{"name": fmt.Sprintf("r-sw%d", n), "mac": fmt.Sprintf("0a:58:0a:00:%02x:01", n), "networks": fmt.Sprintf("10.0.%d.1/24", n)}
		rows["Logical_Switch"][id(6, n)] = ovndb.Row{"name": fmt.Sprintf("sw%d", n), "ports": ovndb.Set(append(ports, ovndb.UUID(join))...), "acls": ovndb.Set(acls...)}
		routerPorts = append(routerPorts, ovndb.UUID(port))
	}
	rows["Logical_Router"] = map[string]ovndb.Row{id(7, 0): {"name": "r", "ports": ovndb.Set(routerPorts...)}}
	f.Add(rows)
	return f.Close()
}

// emptySB writes a database with the chassis of the node.
func emptySB(b *testing.B) string {
	b.Helper()
	f := ovndb.Create(b, ovs.SBSchema)
	f.Add(ovndb.Rows{"SB_Global": {id(1, 1): {}},
		"Encap":           {id(8, 0): {"type": "geneve", "ip": "192.0.2.1", "chassis_name": "worker"}},
		"Chassis":         {id(9, 0): {"name": "worker", "hostname": "worker", "encaps": ovndb.UUID(id(8, 0))}},
		"Chassis_Private": {id(10, 0): {"name": "worker", "chassis": ovndb.UUID(id(9, 0))}}})
	return f.Close()
}

// worker makes the workdir of a node with the ports of a switch.
func worker(b *testing.B) *workdir.Dir {
	b.Helper()
	wd, err := workdir.Find(ovs.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	f := ovndb.Create(b, ovs.Schema)
	rows := ovndb.Rows{"Interface": {}, "Port": {}}
	var ports []any
	for p := range portsPerSwitch {
		name, uuid := fmt.Sprintf("veth%d", p), id(11, p)
		rows["Interface"][uuid] = ovndb.Row{"name": name, "ofport": p + 1, "external_ids": ovndb.Map("iface-id", fmt.Sprintf("pod-0-%d", p))}
		rows["Port"][id(12, p)] = ovndb.Row{"name": name, "interfaces": ovndb.UUID(uuid)}
		ports = append(ports, ovndb.UUID(id(12, p)))
	}
	rows["Bridge"] = map[string]ovndb.Row{id(13, 0): {"name": "br-int", "ports": ovndb.Set(ports...)}}
	rows["Open_vSwitch"] = map[string]ovndb.Row{id(14, 0): {"bridges": ovndb.UUID(id(13, 0)),
		"external_ids": ovndb.Map("system-id", "worker", "ovn-encap-ip", "192.0.2.1", "ovn-encap-type", "geneve")}}
	f.Add(rows)
	if err := os.MkdirAll(filepath.Dir(wd.Database(workdir.OVS)), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(f.Close(), wd.Database(workdir.OVS)); err != nil {
		b.Fatal(err)
	}
	return wd
}
