package ovs

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestSwitchKeepsBridgesOverRestart(t *testing.T) {
	s := Start(t)
	s.Vsctl("add-br", "br0")
	s.Ofctl("add-flow", "br0", "in_port=1,actions=drop")
	s.Restart()
	if flows := s.Ofctl("dump-flows", "br0"); !strings.Contains(flows, "NORMAL") || strings.Contains(flows, "drop") {
		t.Errorf("flows after a restart: %s", flows)
	}
	if out := s.Appctl("dpif/show"); !strings.Contains(out, "br0") {
		t.Errorf("no bridge after a restart: %s", out)
	}
	if _, err := s.Try("ovs-ofctl", "dump-flows", "br1"); err == nil ||
		!strings.Contains(err.Error(), "br1 is not a bridge") {
		t.Errorf("error without standard error: %v", err)
	}
}

func TestDaemonsHaveOnlyALoopback(t *testing.T) {
	s := Start(t)
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*daemon{s.server.daemon, s.vswitchd} {
		proc := fmt.Sprintf("/proc/%d/", d.cmd.Process.Pid)
		if other, err := os.Readlink(proc + "ns/net"); err != nil || other == own {
			t.Skip("network namespaces are forbidden here: ", err)
		}
		devices, err := os.ReadFile(proc + "net/dev")
		if err != nil || strings.Count(string(devices), ":") != 1 || !strings.Contains(string(devices), "lo:") {
			t.Errorf("devices: %s %v", devices, err)
		}
	}
}

func TestServerServesItsFile(t *testing.T) {
	Need(t, "ovsdb-tool", "ovsdb-server", "ovsdb-client")
	file := Dir(t) + "/conf.db"
	Run(t, "ovsdb-tool", "create", file)
	s := Serve(t, file)
	if content := s.Content("Open_vSwitch"); !strings.Contains(content, "Bridge") {
		t.Errorf("content: %s", content)
	}
	if strings.Contains(s.Log(), "|WARN|") {
		t.Errorf("log: %s", s.Log())
	}
	s.Stop()
	if listening(strings.TrimPrefix(s.Remote, "unix:")) {
		t.Error("the server accepts connections after it was stopped")
	}
}
