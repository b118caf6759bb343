//go:build linux

package keeper_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"ovs-offline/replica/linux"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// established are rules by which only packets of known connections come in from outside.
const established = `*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i qr-1 -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -o qg-1 -j SNAT --to-source 172.24.4.10
COMMIT
`

// TestQuestionsFindTheConnectionsOfTheCaptureAndTheirOwn asks for replies to recorded connections, to those that
// earlier frames of the same question open, and to none, many times and in any order.
func TestQuestionsFindTheConnectionsOfTheCaptureAndTheirOwn(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore", "ip")
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	simple(t, wd, "qrouter-2")
	for _, name := range []string{"qrouter-1", "qrouter-2"} {
		write(t, wd.NamespaceRecorded(name, workdir.NamespaceFilters), established)
		write(t, wd.NamespaceRecorded(name, workdir.HostNeighbours),
			"172.24.4.1 dev qg-1 lladdr "+worldMAC+" REACHABLE\n10.1.0.6 dev qr-1 lladdr "+vmMAC+" STALE\n")
	}
	write(t, wd.NamespaceRecorded("qrouter-1", workdir.NamespaceConntrack), `ipv4     2 udp      17 29 src=10.1.0.6 dst=8.8.8.8 sport=5000 dport=53 src=8.8.8.8 dst=172.24.4.10 sport=53 dport=5000 [ASSURED] mark=7 use=1
ipv4     2 tcp      6 431999 ESTABLISHED src=10.1.0.6 dst=8.8.8.8 sport=5001 dport=80 src=8.8.8.8 dst=172.24.4.10 sport=80 dport=5001 [ASSURED] mark=0 use=1
ipv4     2 icmp     1 29 src=10.1.0.6 dst=8.8.8.8 type=8 code=0 id=9 src=8.8.8.8 dst=172.24.4.10 type=0 code=0 id=9 mark=0 use=1
ipv4     2 udp      17 29 src=10.1.0.6 dst=8.8.8.8 sport=5002 dport=53 [UNREPLIED] src=8.8.8.8 dst=172.24.4.10 sport=53 dport=5002 mark=0 use=1
ipv4     2 unknown  89 29 src=10.1.0.6 dst=10.1.0.1 src=10.1.0.1 dst=10.1.0.6 mark=0 use=1
`)
	list, client := restored(t, wd)
	complete(t, list)
	out := func(port uint16) linux.Frame {
		return linux.Frame{Device: "qr-1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", port, 53, 64)}
	}
	in := func(port uint16) linux.Frame {
		return linux.Frame{Device: "qg-1", Bytes: udp(t, worldMAC, gateMAC, "8.8.8.8", "172.24.4.10", 53, port, 64)}
	}
	type question struct {
		name      string
		question  linux.Question
		delivered bool
	}
	questions := []question{
		{"a reply to a recorded connection", linux.Question{Namespace: "qrouter-1", Frame: in(5000)}, true},
		{"a reply to one without replies", linux.Question{Namespace: "qrouter-1", Frame: in(5002)}, true},
		{"a reply to none", linux.Question{Namespace: "qrouter-1", Frame: in(6000)}, false},
		{"a reply to one of the question", linux.Question{Namespace: "qrouter-1",
			Earlier: []linux.Sent{{Namespace: "qrouter-1", Frame: out(6000)}}, Frame: in(6000)}, true},
		{"a reply to one of another namespace",
			linux.Question{Namespace: "qrouter-1", Earlier: []linux.Sent{{Namespace: "qrouter-2", Frame: out(6000)}},
				Frame: in(6000)}, false},
		{"a reply to a recorded one, all new", linux.Question{Namespace: "qrouter-1", New: true, Frame: in(5000)}, false},
		{"a recorded one of another namespace", linux.Question{Namespace: "qrouter-2", Frame: in(5000)}, false},
		{"a new one out", linux.Question{Namespace: "qrouter-1", Frame: out(6000)}, true},
	}
	before := inside(t, wd, "qrouter-1", "conntrack", "-L")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			own, err := linux.Dial(wd)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = own.Close() }()
			for range 10 {
				for _, q := range questions {
					got, err := own.Pass(t.Context(), q.question)
					if err != nil {
						t.Errorf("%s: %v", q.name, err)
					} else if delivered := !got.Local && len(got.Out) == 1 && len(got.Connections) < 2; delivered != q.delivered {
						t.Errorf("%s: %.300s", q.name, fmt.Sprint(got))
					}
				}
			}
		})
	}
	wg.Wait()
	if _, err := client.Pass(t.Context(), questions[0].question); err != nil { // the recorded connections are back
		t.Error(err)
	}
	after := inside(t, wd, "qrouter-1", "conntrack", "-L")
	if plainConnections(before) != plainConnections(after) {
		t.Errorf("the connections were\n%sand are\n%s", before, after)
	}
	got, err := client.Pass(t.Context(), questions[7].question)
	if err != nil {
		t.Fatal(err)
	}
	if want := "udp src=10.1.0.6 dst=8.8.8.8 sport=6000 dport=53 [UNREPLIED] src=8.8.8.8 dst=172.24.4.10 sport=53 dport=6000"; len(got.Connections) != 1 || got.Connections[0] != want {
		t.Errorf("connections %q, want %q", got.Connections, want)
	}
	if fmt.Sprint(got.Reached) != "[prerouting forward postrouting]" {
		t.Errorf("reached %q", got.Reached)
	}
}

// plainConnections returns connections without times, sorted by nothing but their text.
func plainConnections(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 3 && strings.Contains(line, "src=") {
			words[2] = ""
			list = append(list, strings.Join(words, " "))
		}
	}
	return strings.Join(sorted(list), "\n")
}

// TestMarkOfAFrameThatLeaves has rules that mark a packet, by which the routing policy sends it on.
func TestMarkOfAFrameThatLeaves(t *testing.T) {
	ovs.Need(t, "ip", "nft")
	wd := newWorkdir(t)
	simple(t, wd, "node1")
	write(t, wd.NamespaceRecorded("node1", workdir.HostNftables),
		"table inet ovn-kubernetes {\n\tchain udn-service-prerouting {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n\t\tudp dport 53 meta mark set 0x00001001\n\t}\n}\n")
	_, client := restored(t, wd)
	for port, want := range map[uint16]uint32{53: 0x1001, 54: 0} {
		got, err := client.Pass(t.Context(), linux.Question{Namespace: "node1",
			Frame: linux.Frame{Device: "qr-1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, port, 64)}})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Out) != 1 || got.Mark != want {
			t.Errorf("to port %d: out came %d frames with the mark %#x, want one with %#x", port, len(got.Out), got.Mark, want)
		}
	}
}

// TestForwardingThatWasNotRecorded puts a frame for another network into namespaces of which no settings were recorded:
// a router forwards it, and what another namespace does is not known, whatever this machine does.
func TestForwardingThatWasNotRecorded(t *testing.T) {
	for name, forwards := range map[string]bool{"qrouter-1": true, "snat-1": true, "fip-1": true, "qdhcp-1": false,
		"vpn": false} {
		wd := newWorkdir(t)
		simple(t, wd, name)
		if err := os.Remove(wd.NamespaceRecorded(name, workdir.HostSysctl)); err != nil {
			t.Fatal(err)
		}
		_, client := restored(t, wd)
		got, err := client.Pass(t.Context(), linux.Question{Namespace: name,
			Frame: linux.Frame{Device: "qr-1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64)}})
		unknown := strings.Contains(got.Unknown, "whether "+name+" forwards was not recorded")
		if err != nil || len(got.Out) == 1 != forwards || unknown == forwards {
			t.Errorf("%s: %v: %+v", name, err, got)
		}
	}
}
