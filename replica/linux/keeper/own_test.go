//go:build linux

package keeper_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ovs-offline/replica/linux"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// TestNodesOwnNamespaceWithManyDevices restores the namespace of a node with 500 pods and 20,000 connections, and
// asks about one of them.
func TestNodesOwnNamespaceWithManyDevices(t *testing.T) {
	wd := newWorkdir(t)
	var links, connections strings.Builder
	links.WriteString("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n")
	links.WriteString("2: br-ex: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN\n    link/ether " +
		gateMAC + " brd ff:ff:ff:ff:ff:ff\n    inet 172.24.4.10/24 scope global br-ex\n")
	links.WriteString("3: ovn-k8s-mp0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue state UNKNOWN\n    link/ether " + routerMAC + " brd ff:ff:ff:ff:ff:ff\n    inet 10.1.0.1/24 scope global ovn-k8s-mp0\n")
	for i := range 500 {
		fmt.Fprintf(&links, "%d: %08x@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue master ovs-system state UP\n    link/ether 0a:58:00:00:%02x:%02x brd ff:ff:ff:ff:ff:ff\n", i+10, i, i>>8, i&255)
	}
	for i := range 20000 {
		fmt.Fprintf(&connections, "ipv4     2 tcp      6 431999 ESTABLISHED src=10.1.%d.%d dst=8.8.8.8 sport=4000 dport=443 src=8.8.8.8 dst=172.24.4.10 sport=443 dport=%d [ASSURED] mark=0 use=1\n", i>>8, i&255, 20000+i)
	}
	write(t, wd.Recorded(workdir.RecordedLinks), links.String())
	write(t, wd.Recorded(workdir.RecordedKernelRoutes),
		"default via 172.24.4.1 dev br-ex\n10.1.0.0/24 dev ovn-k8s-mp0 proto kernel scope link src 10.1.0.1\n")
	write(t, wd.HostRecorded(workdir.HostNeighbours), "172.24.4.1 dev br-ex lladdr "+worldMAC+" REACHABLE\n")
	write(t, wd.HostRecorded(workdir.HostSysctl), "net.ipv4.ip_forward = 1\n")
	write(t, wd.HostRecorded(workdir.NamespaceFilters),
		strings.ReplaceAll(strings.ReplaceAll(established, "qr-1", "ovn-k8s-mp0"), "qg-1", "br-ex"))
	write(t, wd.HostRecorded(workdir.NamespaceConntrack), connections.String())
	began := time.Now()
	list, client := restored(t, wd)
	t.Logf("restored in %v", time.Since(began))
	complete(t, list)
	if list[0].Title() != netns.OwnTitle {
		t.Errorf("namespace %q", list[0].Title())
	}
	began = time.Now()
	got, err := client.Pass(t.Context(), linux.Question{Namespace: netns.Own,
		Frame: linux.Frame{Device: "ovn-k8s-mp0", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64)}})
	t.Logf("a question took %v", time.Since(began))
	if err != nil || len(got.Out) != 1 || got.Out[0].Device != "br-ex" {
		t.Errorf("%v: %.500v", err, got)
	}
	began = time.Now()
	if _, err := client.Pass(t.Context(), linux.Question{Namespace: netns.Own, New: true,
		Frame: linux.Frame{Device: "ovn-k8s-mp0",
			Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64)}}); err != nil {
		t.Error(err)
	}
	t.Logf("a question with New took %v", time.Since(began))
	began = time.Now()
	if _, err := client.Pass(t.Context(), linux.Question{Namespace: netns.Own,
		Frame: linux.Frame{Device: "ovn-k8s-mp0",
			Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64)}}); err != nil {
		t.Error(err)
	}
	t.Logf("the next took %v", time.Since(began))
	if out := inside(t, wd, netns.OwnTitle, "ip", "route"); !strings.Contains(out, "default via 172.24.4.1 dev br-ex") {
		t.Error(out)
	}
}

// TestWhereNamespacesAreForbidden runs the start of a keeper where no user namespace can be made: the error says why.
func TestWhereNamespacesAreForbidden(t *testing.T) {
	ovs.Need(t, "unshare")
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	c := exec.Command("unshare", "-Ur", "sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec /proc/self/fd/3`)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	c.ExtraFiles, c.Env = []*os.File{self}, append(os.Environ(), asAsker+"="+wd.Path())
	out, err := c.CombinedOutput()
	if c.ProcessState != nil && c.ProcessState.ExitCode() == 77 {
		t.Skip("namespaces can't be forbidden here")
	}
	if err != nil || !strings.Contains(string(out), "namespaces can't be created") ||
		!strings.Contains(string(out), "user.max_user_namespaces") {
		t.Errorf("%v: %s", err, out)
	}
}
