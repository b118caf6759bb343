package netns

import (
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

func TestReadFindsTheNodesOwnNamespaceAndNamedOnes(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	const link = "2: eth0: <UP> mtu 1500 qdisc noqueue\n"
	write(wd.NamespaceRecorded("qrouter-1", workdir.RecordedLinks), link)
	write(wd.NamespaceRecorded("qrouter-1", workdir.NamespaceRules6), "0:\tfrom all lookup local\n")
	write(wd.NamespaceRecorded("qrouter-1", workdir.NamespaceFilters), "*filter\nCOMMIT\n")
	write(wd.NamespaceRecorded("empty", workdir.NamespaceFilters), "*filter\nCOMMIT\n")
	write(wd.Recorded(workdir.RecordedLinks), link)
	names := func() (names []string) {
		list, err := Read(&wd.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			names = append(names, n.Name)
		}
		return names
	}
	expect.Equal(t, names(), []string{"qrouter-1"}, "without the node's routes")
	write(wd.Recorded(workdir.RecordedKernelRoutes), "default via 10.0.0.1 dev eth0\n")
	write(wd.HostRecorded(workdir.HostSysctl),
		"net.ipv4.ip_forward = 1\nkernel.core_pattern = |/bin/sh\nnet.ipv4.conf.eth0/7.rp_filter = 2\n")
	expect.Equal(t, names(), []string{Own, "qrouter-1"}, "with them")
	list, _ := Read(&wd.Data)
	expect.Equal(t, list[0].Sysctls, map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.conf.eth0/7.rp_filter": "2"},
		"settings")
	expect.Equal(t, list[1].HasRules, [2]bool{false, true}, "families with rules")
	expect.Equal(t, list[1].Filters, wd.NamespaceRecorded("qrouter-1", workdir.NamespaceFilters),
		"the path of the filters")
}
