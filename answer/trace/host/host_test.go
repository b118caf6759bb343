package host_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// capture starts a replica of a bundled capture and opens it.
func capture(t *testing.T, name string) (*host.Host, *workdir.Dir) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	report := captures.Report(t, "captures/"+name)
	n := fidelity.Replayed(t, report)
	h, err := host.Open(t.Context(), "", n.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, n.Workdir
}

// TestOpenReadsTheNode compares with what ovs-vsctl printed on the live node.
func TestOpenReadsTheNode(t *testing.T) {
	h, wd := capture(t, "ovn-openstack-compute")
	tool := func(args ...string) string {
		return strings.TrimSpace(strings.ReplaceAll(ovs.Run(t,
			append([]string{filepath.Join(wd.Bin(), "ovs-vsctl-recorded")}, args...)...), `"`, ""))
	}
	id := func(key string) string { return tool("get", "Open_vSwitch", ".", "external_ids:"+key) }
	if h.Name != id("hostname") || h.Chassis != id("system-id") || len(h.Encaps) != 1 ||
		h.Encaps[0].String() != id("ovn-encap-ip") {
		t.Errorf("%s, chassis %s, tunnel addresses %v", h.Name, h.Chassis, h.Encaps)
	}
	taps := 0
	for _, p := range h.Ports() {
		if strings.HasPrefix(p.Name, "tap") {
			taps++
			expect.Equal(t, p.IfaceID, tool("get", "Interface", p.Name, "external_ids:iface-id"), p)
			if found, ok := h.Attached(p.IfaceID); !ok || found != p {
				t.Errorf("iface-id %s is that of %v", p.IfaceID, found)
			}
			if found, ok := h.Numbered(p.Bridge, p.Number); !ok || found != p {
				t.Errorf("port %d of %s is %v", p.Number, p.Bridge, found)
			}
		}
		if p.IsTunnel() && p.Options["remote_ip"] != tool("get", "Interface", p.Name, "options:remote_ip") {
			t.Errorf("%+v", p)
		}
	}
	if taps == 0 || h.Conntrack.Table.Len() == 0 || h.Conntrack.Userspace {
		t.Errorf("%d taps, %d connections", taps, h.Conntrack.Table.Len())
	}
	if field, ok := h.OptionField("br-int", odp.Option{Class: "0x102", Type: "0x80", Value: "0x30004"}); !ok ||
		field != "tun_metadata0" {
		t.Errorf("OVN's option is %q", field)
	}
}

func TestOpenReadsPhysicalNetworks(t *testing.T) {
	h, _ := capture(t, "ovn-kubernetes-worker")
	expect.Equal(t, h.Networks["breth0"], []string{"physnet"}, "networks", h.Networks)
	uplinks := h.Uplinks("physnet")
	if len(uplinks) != 1 || uplinks[0].Name != "eth0" || !slices.Equal(h.NetworksOf(uplinks[0]), []string{"physnet"}) {
		t.Errorf("uplinks %v", uplinks)
	}
	for _, p := range h.Ports() {
		if p != uplinks[0] && h.NetworksOf(p) != nil {
			t.Errorf("port %s leads to %v", p.Name, h.NetworksOf(p))
		}
	}
}

func TestTunnelsByTheirAddresses(t *testing.T) {
	h, _ := capture(t, "ovn-openstack-compute")
	local := h.Encaps[0]
	for _, p := range h.Ports() {
		if !p.IsTunnel() {
			continue
		}
		remote := netip.MustParseAddr(p.Options["remote_ip"])
		if found, ok := h.TunnelFrom(p.Type, local, remote); !ok || found != p {
			t.Errorf("a packet from %v enters by %v, want %s", remote, found, p.Name)
		}
		if own, ok := h.TunnelTo(p.Type, remote); !ok || own != local {
			t.Errorf("a tunnel to %v has the address %v", remote, own)
		}
		if _, ok := h.TunnelFrom("vxlan", local, remote); ok && p.Type != "vxlan" {
			t.Error("a tunnel of another type receives the packet")
		}
	}
	if _, ok := h.TunnelFrom("geneve", local, netip.MustParseAddr("203.0.113.9")); ok {
		t.Error("a tunnel receives packets of an address that it does not have")
	}
}

// TestStopMeanwhileIsNamed stops a replica while questions are asked, and then kills another: only the first is said to have
// been stopped, and no version of Open vSwitch is blamed for it.
func TestStopMeanwhileIsNamed(t *testing.T) {
	for name, end := range map[string]struct {
		end     func(wd *workdir.Dir) error
		stopped bool
	}{
		"stopped": {func(wd *workdir.Dir) error { return replica.Stop(t.Context(), wd, process.New(process.Options{})) },
			true},
		"killed": {func(wd *workdir.Dir) error {
			pid, err := os.ReadFile(filepath.Join(wd.VarRun(workdir.OVS), "ovs-vswitchd.pid"))
			if err != nil {
				return err
			}
			number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
			return errors.Join(err, syscall.Kill(number, syscall.SIGKILL))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, wd := capture(t, "ovn-kubernetes-worker")
			const askers = 8
			answered, errs := make(chan bool, 1000000), make(chan error, askers)
			for range askers {
				go func() {
					for {
						if _, err := h.Ask(t.Context(), "ofproto/trace", "br-int", "in_port=1"); err != nil {
							errs <- err
							return
						}
						answered <- true
					}
				}()
			}
			ovs.Receive(t, "an answer", answered)
			if err := end.end(wd); err != nil {
				t.Fatal(err)
			}
			for range askers {
				if err := ovs.Receive(t, "an error", errs); strings.Contains(err.Error(), "the replica was stopped meanwhile") != end.stopped {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestAskReturnsWhatTheSwitchAnswers(t *testing.T) {
	h, _ := capture(t, "ovn-kubernetes-worker")
	for range 3 { // the same connection serves again
		if text, err := h.Ask(t.Context(), "version"); err != nil || !strings.Contains(text, "ovs-vswitchd") {
			t.Errorf("%q %v", text, err)
		}
		_, err := h.Ask(t.Context(), "ofproto/trace", "no-such-bridge", "in_port=1")
		if text, refused := unixctl.Refused(err); !refused || text != "no-such-bridge: unknown bridge" {
			t.Errorf("%q %v", text, err)
		}
	}
	if _, err := h.Ask(t.Context(), "bad\x00command"); err == nil {
		t.Error("a NUL was sent")
	}
	if text, err := h.Ask(t.Context(), "version"); err != nil || text == "" {
		t.Error(err)
	}
}
