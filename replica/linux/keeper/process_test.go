//go:build linux

package keeper_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/linux"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// sending are rules for what the node itself sends.
const sending = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A OUTPUT -d 9.9.9.9/32 -p udp -m udp --dport 53 -j DNAT --to-destination 8.8.8.8:5353
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A OUTPUT -p udp -m udp --dport 54 -j DROP
COMMIT
`

// TestProcessesSend sends what a process sends: by the rules for the node's own packets, to a device, to the namespace
// itself, and nowhere.
func TestProcessesSend(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore", "ip")
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	write(t, wd.NamespaceRecorded("qrouter-1", workdir.NamespaceFilters), sending)
	write(t, wd.NamespaceRecorded("qrouter-1", workdir.HostNeighbours),
		"172.24.4.1 dev qg-1 lladdr "+worldMAC+" REACHABLE\n")
	list, client := restored(t, wd)
	complete(t, list)
	send := func(to string, port uint16) linux.Passage {
		frame := linux.Frame{Device: linux.Process, Bytes: udp(t, gateMAC, worldMAC, "172.24.4.10", to, 1000, port, 64)}
		passage, err := client.Pass(t.Context(), linux.Question{Namespace: "qrouter-1", Frame: frame})
		if err != nil {
			t.Fatal(err)
		}
		return passage
	}
	translated := send("9.9.9.9", 53)
	if len(translated.Out) != 1 || translated.Out[0].Device != "qg-1" ||
		string(translated.Out[0].Bytes[30:34]) != "\x08\x08\x08\x08" {
		t.Errorf("to another address: %+v", translated)
	}
	if !slices.ContainsFunc(translated.Steps,
		func(s linux.Step) bool { return strings.Contains(s.Rule, "-A OUTPUT -d 9.9.9.9/32") }) {
		t.Errorf("the rule is not named: %+v", translated.Steps)
	}
	dropped := send("8.8.8.8", 54)
	if last := dropped.Steps[len(dropped.Steps)-1]; len(dropped.Out) > 0 || last.Verdict != "drop" ||
		!strings.Contains(last.Rule, "--dport 54 -j DROP") {
		t.Errorf("a drop: %+v", dropped)
	}
	if own := send("172.24.4.10", 55); !own.Local {
		t.Errorf("to the namespace itself: %+v", own)
	}
	for name, frame := range map[string][]byte{"no packet": make([]byte, 14),
		"a short header": append(make([]byte, 12), 8, 0, 0x45, 0, 0, 0),
		"a wrong length": append(append(make([]byte, 12), 8, 0, 0x45), make([]byte, 30)...)} {
		if _, err := client.Pass(t.Context(), linux.Question{Namespace: "qrouter-1",
			Frame: linux.Frame{Bytes: frame}}); err == nil {
			t.Errorf("%s is sent", name)
		}
	}
}
