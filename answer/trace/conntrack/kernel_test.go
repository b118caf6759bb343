package conntrack_test

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/conntrack"
)

// TestConnectionsOfTheKernelAreRead compares lines of conntrack 1.4.7 and of /proc/net/nf_conntrack with those of
// dpctl/dump-conntrack for the same connections, but for labels, which the kernel's form lacks.
func TestConnectionsOfTheKernelAreRead(t *testing.T) {
	for kernel, datapath := range map[string]string{
		"tcp      6 3999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1000 dport=80 src=10.0.0.2 dst=10.0.0.1 sport=80 dport=1000 [ASSURED] mark=3 zone=5 use=1":                                                                    "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=1000,dport=80),reply=(src=10.0.0.2,dst=10.0.0.1,sport=80,dport=1000),zone=5,status=SEEN_REPLY|ASSURED|CONFIRMED,mark=3,protoinfo=(state=ESTABLISHED)",
		"ipv4     2 tcp      6 99 FIN_WAIT src=10.0.0.7 dst=10.0.0.100 sport=5000 dport=80 src=10.0.0.2 dst=10.0.0.7 sport=8080 dport=5000 [ASSURED] mark=0 use=1 id=897760337":                                                    "tcp,orig=(src=10.0.0.7,dst=10.0.0.100,sport=5000,dport=80),reply=(src=10.0.0.2,dst=10.0.0.7,sport=8080,dport=5000),status=SEEN_REPLY|CONFIRMED,protoinfo=(state=FIN_WAIT_1)",
		"icmp     1 3999 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=7 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=7 mark=0 zone=9 use=1 id=3785270314":                                                                  "icmp,orig=(src=10.0.0.1,dst=10.0.0.2,id=7,type=8,code=0),reply=(src=10.0.0.2,dst=10.0.0.1,id=7,type=0,code=0),zone=9,status=CONFIRMED",
		"ipv6     10 udp      17 29 src=fd00::1 dst=fd00::2 sport=5 dport=53 packets=3 bytes=9 [UNREPLIED] src=fd00::2 dst=fd00::1 sport=53 dport=5 packets=0 bytes=0 mark=0 secctx=system_u:object_r:unlabeled_t:s0 zone=0 use=2": "udp,orig=(src=fd00::1,dst=fd00::2,sport=5,dport=53),reply=(src=fd00::2,dst=fd00::1,sport=53,dport=5),status=CONFIRMED",
		"sctp     132 399 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 sport=2 dport=1 mark=0 use=1":                                                                                "sctp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=1,dport=2),reply=(src=10.0.0.2,dst=10.0.0.1,sport=2,dport=1),status=CONFIRMED",
	} {
		got, ok := conntrack.ParseConnection(kernel)
		want, _ := conntrack.ParseConnection(datapath)
		if !ok {
			t.Errorf("not read: %s", kernel)
			continue
		}
		want.Unlabelled = true
		if *got != *want {
			t.Errorf("%s: %+v, want %+v", kernel, *got, *want)
		}
	}
}

// TestLinesThatAreNoConnectionsOfTheKernel checks which lines are counted as not read.
func TestLinesThatAreNoConnectionsOfTheKernel(t *testing.T) {
	_, unread, err := conntrack.Read(strings.NewReader("conntrack v1.4.7 (conntrack-tools): 6 flow entries have been shown.\n\n"))
	if unread != 0 || err != nil {
		t.Errorf("%d lines, %v", unread, err)
	}
	for _, line := range []string{
		"udp      17 3999 src=10.0.0.1 dst=10.0.0.4 sport=1001 dport=53 zone-orig=3 [UNREPLIED] src=10.0.0.4 dst=10.0.0.1 sport=53 dport=1001 mark=0 use=1",
		"tcp      6 3999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1000 dport=80",
		"tcp      6 3999 ESTABLISHED src=10.0.0.1 dst=fd00::2 sport=1000 dport=80 src=fd00::2 dst=10.0.0.1 sport=80 dport=1000",
		"tcp      6 3999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=70000 dport=80 src=10.0.0.2 dst=10.0.0.1 sport=80 dport=1000",
		"tcp      6 3999 src= dst= src= dst=",
		"src=1 src=2 src=3 src=4",
	} {
		if connection, ok := conntrack.ParseConnection(line); ok {
			t.Errorf("%s: %+v", line, connection)
		}
	}
}
