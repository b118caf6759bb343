package names

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

func open(tb testing.TB, path string) *file.Index {
	tb.Helper()
	if path == "" {
		return nil
	}
	x, err := file.OpenIndex(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(x.Close)
	return x
}

func load(tb testing.TB, deployments ...*snapshot.Deployment) *Names {
	tb.Helper()
	n, err := Load(tb.Context(), deployments)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// captured returns the names of a captured node, which is in the set under the name "here".
func captured(t *testing.T, name string) (*Names, captures.Node) {
	t.Helper()
	for _, node := range captures.Nodes(t) {
		if node.Name == name {
			return load(t, &snapshot.Deployment{NB: open(t, node.NB), SB: open(t, node.SB),
				Nodes: []snapshot.Member{{Name: "here", OVS: open(t, node.OVS)}}}), node
		}
	}
	t.Fatalf("no capture %s", name)
	return nil, captures.Node{}
}

func find(t *testing.T, n *Names, name string) Endpoint {
	t.Helper()
	e, err := n.Find(name, Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEndpointsOfCaptures finds endpoints of captured nodes by all their names.
func TestEndpointsOfCaptures(t *testing.T) {
	for capture, names := range map[string]map[string]string{
		"ovn-kubernetes-worker": {
			"ns1/client": "ns1_client", "pod/ns1/client": "ns1_client", "ns1_client": "ns1_client", "NS1/Client": "ns1_client",
			"0a:58:0a:f4:01:05": "ns1_client", "0A:58:0A:F4:01:05": "ns1_client", "10.244.1.5": "ns1_client",
			"::ffff:10.244.1.5": "ns1_client",
			"node/ovn-worker":   "k8s-ovn-worker", "k8s-ovn-worker": "k8s-ovn-worker",
			"10.96.10.10:80": "", "10.96.10.10": "", "Service_web_TCP": "", "rtoj-GR_ovn-worker": "rtoj-GR_ovn-worker",
		},
		"ovn-openstack-compute": {
			"p-vm1": "p-vm1", "fd00:10::5": "p-vm1", "FD00:10:0::5": "p-vm1", "p-sub": "p-sub", "192.168.10.100": "p-vip",
			"172.24.4.21": "",
		},
	} {
		n, _ := captured(t, capture)
		for name, port := range names {
			e, err := n.Find(name, Filter{})
			if err != nil || e.LogicalPort != port {
				t.Errorf("%s: %s is %v, %v", capture, name, e, err)
				continue
			}
			if again, err := n.Find(e.Name, Filter{}); err != nil || again.LogicalPort != e.LogicalPort {
				t.Errorf("%s: %s was found as %s, which finds %v, %v", capture, name, e.Name, again, err)
			}
		}
	}
}

func TestEndpointDescribesItself(t *testing.T) {
	n, _ := captured(t, "ovn-kubernetes-worker")
	for name, want := range map[string]string{
		"ns1/client": "ns1/client (pod: port ns1_client, 0a:58:0a:f4:01:05, 10.244.1.5, switch ovn-worker, on here)",
		"ns2/x":      "ns2/x (pod: port ns2_x, 0a:58:0a:f4:02:05, 10.244.2.5, switch ovn-worker2, on ovn-worker2 (not captured))",
	} {
		expect.Equal(t, find(t, n, name).String(), want)
	}
}

func TestUnknownNameHasNearest(t *testing.T) {
	n, _ := captured(t, "ovn-kubernetes-worker")
	for name, want := range map[string]string{
		"ns1/cleint":  `nothing is called "ns1/cleint" in the collected databases; names like it: ns1/client`,
		"client":      `names like it: ns1/client`,
		"lien":        `names like it: ns1/client`,
		"198.51.99.9": "an address outside of the logical networks is external/198.51.99.9",
		"external/x":  `nothing is called "external/x"`,
		// What follows a colon.
		"8.8.8.8:443":      "an address outside of the logical networks is external/8.8.8.8:443",
		"ns1/client:70000": `"70000" is not a port: a port is a number from 1 to 65535`,
		"ns1/client:http":  `"http" is not a port`,
		"ns1/client:80":    `"ns1/client" is, and only the destination's name can have a port`,
		"ns1/cleint:80":    "names like it: ns1/client",
	} {
		_, err := n.Find(name, Filter{})
		unknown, ok := errors.AsType[*UnknownError](err)
		if !ok || unknown.Name != name || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServiceOfAnotherProtocol(t *testing.T) {
	n, _ := captured(t, "ovn-kubernetes-worker")
	for _, name := range []string{"10.96.10.10:80", "10.96.10.10"} {
		_, err := n.Find(name, Filter{Protocol: "udp"})
		if want := fmt.Sprintf("%q is a load balancer for tcp, not udp", name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := n.Find(name, Filter{}); err != nil || e.Protocol != "tcp" {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	n, _ := captured(t, "ovn-kubernetes-worker")
	expect.Equal(t, n.Complete("ns1/", 10), []string{"ns1/client", "ns1/web1", "ns1/web2"})
	expect.Equal(t, n.Complete("n", 2), []string{"node/ovn-worker", "node/ovn-worker2"})
	for _, name := range n.Complete("", 1000) {
		if _, err := n.Find(name, Filter{}); err != nil {
			t.Errorf("a completed name is not found: %v", err)
		}
	}
}

var fieldPattern = regexp.MustCompile(`(?:^|[,|])([a-z0-9_]+)=([^,|]*)`)

// TestFirstPacketIsThatOfTheCapture compares first packets with those that the captures'
// authors sent on the live nodes between the same addresses.
func TestFirstPacketIsThatOfTheCapture(t *testing.T) {
	for _, capture := range []string{"ovn-kubernetes-worker", "ovn-openstack-compute"} {
		n, node := captured(t, capture)
		list, err := os.Open(node.Packets)
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		compared := 0
		for scanner := bufio.NewScanner(list); scanner.Scan(); {
			line := scanner.Text()
			fields := map[string]string{}
			for _, m := range fieldPattern.FindAllStringSubmatch(line, -1) {
				fields[m[1]] = m[2]
			}
			from, err := n.Find(fields["dl_src"], Filter{})
			src, dst := fields["nw_src"]+fields["ipv6_src"], fields["nw_dst"]+fields["ipv6_dst"]
			if err != nil || dst == "" || !strings.HasPrefix(line, "br-int|") || fields["tun_src"] != "" ||
				!strings.Contains(fmt.Sprint(from.IPs), src) {
				continue
			}
			compared++
			to, err := n.Find("external/"+dst, Filter{}) // the packet depends on the address only
			if err != nil {
				t.Fatal(err)
			}
			p, err := n.First(Question{From: from, To: to})
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if !slices.Equal(p.Nodes, []string{"here"}) || p.Port == "" {
				t.Errorf("%s: starts at %v %s", line, p.Nodes, p.Port)
			}
			// Nothing has the addresses of these packets: the sender would ask for them first.
			if strings.HasSuffix(dst, ".1.200") || strings.HasSuffix(dst, ".30.99") {
				if p.Unresolved.String() != dst || !strings.HasPrefix(p.Flow, "arp,") {
					t.Errorf("%s: %+v", line, p)
				}
				continue
			}
			if !strings.Contains(p.Flow, "dl_dst="+fields["dl_dst"]+",") && fields["nd_target"] == "" {
				t.Errorf("%s\nfirst packet %s", line, p.Flow)
			}
		}
		if compared < 15 {
			t.Errorf("%s: %d packets compared", capture, compared)
		}
		t.Logf("%s: %d packets", capture, compared)
	}
}
