package recording_test

import (
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir/recording"
)

// TestLogsByPath checks which paths are logs, of which program, and which pod printed them.
func TestLogsByPath(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for file, want := range map[string][3]string{
		"top/var/log/openvswitch/ovs-vswitchd.log": {"ovs-vswitchd",
			"ovs-vswitchd.log"},
		"var/log/openvswitch/ovs-vswitchd.log-20260101.gz": {"ovs-vswitchd",
			"ovs-vswitchd.log-20260101.gz"},
		"var/log/openvswitch/ovsdb-server.log.2.zst": {"ovsdb-server",
			"ovsdb-server.log.2.zst"},
		"var/log/ovn/ovsdb-server-nb.log": {"ovsdb-server-nb",
			"ovsdb-server-nb.log"},
		"var/log/kolla/openvswitch/ovn-northd.log.1": {"ovn-northd",
			"ovn-northd.log.1"},
		"host/var/log/containers/openvswitch/ovn-controller.log": {"ovn-controller",
			"ovn-controller.log"},
		"var/snap/microovn/common/logs/ovn-ic.log": {"ovn-ic",
			"ovn-ic.log"},
		"sos_strings/openvswitch/var.log.openvswitch.ovs-vswitchd.log.tailed": {"ovs-vswitchd",
			"ovs-vswitchd.log"},
		"sos_strings/logs/var.log.messages.tailed": {"syslog",
			"messages"},
		"var/log/neutron/server.log": {"neutron-server",
			"neutron-server.log"},
		"var/log/neutron/neutron-ovn-metadata-agent.log.3.gz": {"neutron-ovn-metadata-agent",
			"neutron-ovn-metadata-agent.log.3.gz"},
		"var/log/syslog.1": {"syslog",
			"syslog.1"},
		"var/log/messages-20260101": {"syslog",
			"messages-20260101"},
		"var/log/kern.log": {"kernel",
			"kern.log"},
		"sos_commands/kernel/dmesg_-T": {"kernel",
			"dmesg_-T"},
		"sos_commands/logs/journalctl_--no-pager_--boot": {"journal",
			"journalctl_--no-pager_--boot"},
		"sos_commands/systemd/journalctl_--list-boots": {},
		"sos_commands/ovn_host/journalctl_--no-pager_--unit_ovn-controller": {"journal",
			"journalctl_--no-pager_--unit_ovn-controller"},
		"mg/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-a/nbdb/nbdb/logs/current.log": {"ovsdb-server-nb",
			"ovnkube-node-a.current.log", "ovnkube-node-a"},
		"mg/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-a/nbdb/nbdb/logs/rotated/0.log.1.gz": {"ovsdb-server-nb",
			"ovnkube-node-a.rotated.0.log.1.gz", "ovnkube-node-a"},
		"mg/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-a/kube-rbac-proxy/x/logs/current.log": {},
		"mg/namespaces/default/pods/web/web/web/logs/current.log":                                       {},
		"r/sos_commands/kubernetes/cluster-info/openstack/podlogs/ovn-central-0/kubectl_--kubeconfig_.etc.kubernetes.admin.conf_--namespace_openstack_logs_ovn-central-0_-c_ovn-northd": {
			"ovn-northd", "ovn-central-0.ovn-northd.log", "ovn-central-0"},
		"r/sos_commands/kubernetes/cluster-info/openstack/podlogs/ovn-central-0/k8s_kubectl_--namespace_openstack_logs_ovn-central-0_-c_ovn-nb-db-server": {
			"ovsdb-server-nb", "ovn-central-0.ovn-nb-db-server.log", "ovn-central-0"},
		"r/sos_commands/openshift/cluster_info/openshift-ovn-kubernetes/podlogs/ovnkube-node-a/oc_logs_--namespace_openshift-ovn-kubernetes_ovnkube-node-a_-c_northd.tailed": {
			"ovn-northd", "ovnkube-node-a.northd.log", "ovnkube-node-a"},
		"r/sos_commands/kubernetes/cluster-info/openstack/podlogs/ovn-x/kubectl_--namespace_openstack_logs_ovn-x_-c_ovn-controller": {},
		"r/sos_commands/kubernetes/cluster-info/openstack/podlogs/mysql-0/kubectl_--namespace_openstack_logs_mysql-0_-c_mysql":      {},
		"var/log/pods/kube-system_ovs-ovn-x_12-34/openvswitch/0.log": {"openvswitch",
			"ovs-ovn-x.0.log", "ovs-ovn-x"},
		"var/log/pods/kube-system_etcd-x_12-34/etcd/0.log": {},
		"var/log/containers/ovnkube-node-a_openshift-ovn-kubernetes_ovn-controller-" + hash +
			".log": {"ovn-controller", "ovnkube-node-a." + hash + ".log", "ovnkube-node-a"},
		"var/log/containers/stdouts/ovn_controller.log": {"ovn-controller",
			"stdouts.ovn_controller.log"},
		"sos_commands/podman/containers/podman_logs_-t_ovn_controller": {"ovn-controller",
			"podman.ovn_controller"},
		"sos_commands/podman/podman_logs_-t_nova_compute": {},
		"logs/kube-system/kube-ovn-controller-x/kube-ovn-controller.log": {"kube-ovn-controller", "kube-ovn-controller-x.log",
			"kube-ovn-controller-x"},
		"kubectl-ko-log/n1/kube-ovn/kube-ovn-cni.log": {"kube-ovn-cni",
			"kube-ovn-cni.log"},
		"var/log/openvswitch/notes.txt": {},
		"var/log/nova/nova-compute.log": {},
		"network_logs/libovsdb.log":     {},
		"ovs-vswitchd.log.md":           {},
	} {
		log, ok := recording.LogOf(file)
		expect.Equal(t, [3]string{log.Program, log.Name, log.Pod}, want, file)
		expect.Equal(t, ok, want[0] != "", file)
	}
}

// TestLogsByContent checks the program of files that hold lines as the programs write them.
func TestLogsByContent(t *testing.T) {
	const line = "2026-11-27T10:00:00.123Z|00012|"
	for _, c := range []struct{ file, text, want string }{
		{"a.txt", line + "bridge|INFO|added interface eth0 on port 1\n", "ovs-vswitchd"},
		{"a.txt", "cut\n" + line + "timeval(handler12)|WARN|Unreasonably long 2000ms poll interval\n", "daemon"},
		{"n1-ovn-controller.txt", line + "timeval|WARN|Unreasonably long 2000ms poll interval\n", "ovn-controller"},
		{"0.log", "2026-11-27T10:00:00.123456789Z stderr F " + line + "northd|INFO|x\n", "ovn-northd"},
		{"a.txt", "2026-11-27 10:00:00 INFO nothing of ours\n", ""},
		{"a.txt", "see " + line + "bridge|INFO|x\n", ""},
		{"a.txt", line + "ofproto_dpif_xlate(handler1)|WARN|over max translation depth 64 on bridge br0\n", "ovs-vswitchd"},
		{"a.txt", line + "dpif_netlink(handler1)|WARN|lost packet\n" + line + "ofctrl|INFO|x\n", "daemon"}, // two daemons
		{"a.txt", line + "util|EMER|assertion x failed in y()\n", "daemon"},
		{"a.txt", "May 24 20:51:10 n1 ovs-vswitchd: ovs|00591|timeval|WARN|Unreasonably long 2345ms poll interval\n",
			"ovs-vswitchd"},
		{"a.txt", "May 24 20:51:10 n1 ovs-vswitchd[9]: ovs|00592|bridge|WARN|x\nMay 24 20:51:10 n1 ovn-controller[8]: ovs|00592|main|INFO|x\n", "daemon"},
		{"a.txt", "2022-01-01T00:00:00+02:00 n1 ovsdb-server[1]: ovs|00002|timeval|WARN|x\n", "ovsdb-server"},
		{"a.txt", "Oct 30 20:50:21|00466|ofproto|WARN|x\n", "ovs-vswitchd"},
		{"a.txt", "Oct 30 20:50:21|00466|netdev|WARN|x\n", "daemon"},
		{"a.json", `{"log":"2022-01-01T00:00:00.001Z|00001|northd|INFO|x\n","stream":"stderr","time":"2022-01-01T00:00:00.1Z"}` + "\n", "ovn-northd"},
		{"a.txt", "May 24 20:51:10 n1 kernel: a|INFO|b\n", ""},
		{"a.txt", "Oct 32 20:50:21|00466|netdev|WARN|x\n", ""},
	} {
		log, ok := recording.LogOfContent(c.file, []byte(c.text))
		expect.Equal(t, log.Program, c.want, c)
		expect.Equal(t, ok, c.want != "", c)
	}
}
