package ticket_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/collect/ticket"
)

// BenchmarkHostileTexts reads texts that repeat one thing, in three sizes: time grows with the size, whatever it is.
func BenchmarkHostileTexts(b *testing.B) {
	const flow = " cookie=0x2, duration=5s, table=0, n_packets=0, n_bytes=0, priority=7,in_port=1 actions=output:2\n"
	const begin = "$ ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n"
	for name, c := range map[string]struct{ begin, unit string }{
		"prompts":       {"", "[root@n1 ~]# ovs-ofctl dump-flows br0\n"},
		"flows":         {begin, flow},
		"flows cut":     {begin, strings.Replace(flow, "output:2", "", 1)},
		"prose":         {"", "The ovs node and the ip address of the dpctl ko are not the same as of ovn-x in this case.\n"},
		"fences":        {"", "```\n~~~\n{code}\n> > > > ```\n"},
		"ANSI":          {"", "\x1b[1m\x1b[31mx\x1b[0m\x1b]0;t\x07 ovs\x1b[K\n"},
		"quotations":    {"", strings.Repeat("> ", 400) + "x\n"},
		"parentheses":   {"", strings.Repeat("(", 800) + "\n"},
		"commands":      {"", strings.Repeat("ovs-vsctl show; ", 50) + "\n"},
		"nested":        {"", "ssh a \"sudo sh -c 'ovs-vsctl \\\"show\\\"'\" $(ovs $(ovs $(ovs)))\n"},
		"headings":      {"", "## On the node " + strings.Repeat("=", 50) + ":\n"},
		"HTML":          {"<html><body>", "<pre>&amp;<b>ovs</b></pre>\n"},
		"logs":          {"", "2026-05-07T06:44:05.386Z|00011|bridge|INFO|bridge br0: added interface eth0 on port 1\n"},
		"replies":       {"", "NXST_FLOW reply (xid=0x4):\n" + flow},
		"invalid UTF-8": {"", "\xff\xfe\xc0 ovs-ofctl dump-flows \xff\n"},
	} {
		for _, kib := range []int{64, 640, 6400} {
			text := c.begin + strings.Repeat(c.unit, kib<<10/len(c.unit))
			b.Run(fmt.Sprintf("%s/%d KiB", name, kib), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					ticket.Read(text)
				}
			})
		}
	}
}
