package ticket_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/collect/ticket"
	"ovs-offline/test/check/expect"
)

const (
	shown = "4b6b0d73-b824-4d6b-9ec7-584b4706f5c9\n    Bridge br-int\n        Port eth0\n            Interface eth0\n    ovs_version: \"3.1.0\"\n"
	flows = "OFPST_FLOW reply (OF1.3) (xid=0x2):\n cookie=0x1, duration=5s, table=0, n_packets=0, n_bytes=0, priority=1 actions=drop\n"
	// mapping has an empty line, as ovs-ofctl prints it.
	mapping = "NXT_TLV_TABLE_REPLY (OF1.4) (xid=0x2):\n max option space=256 max fields=64\n allocated option space=4\n\n mapping table:\n  class  type  length  match field\n ------  ----  ------  --------------\n  0x102  0x80       4  tun_metadata0\n"
	fdb     = " port  VLAN  MAC                Age\n    1     0  0a:00:00:00:00:01    3\n"
)

// found returns what a piece is, and its text without the blanks around it.
func found(text string) (list [][2]string) {
	for _, piece := range ticket.Split(text) {
		what := strings.TrimSpace(fmt.Sprintf("%s %s %s", piece.Host, piece.Run.Command.Name, piece.Run.Argument))
		if piece.Run.OpenFlow > 0 {
			what += " " + piece.Run.OpenFlow.String()
		}
		list = append(list, [2]string{what, piece.Text})
	}
	return list
}

// TestPastedOutputs checks the ways in which people paste the outputs of commands.
func TestPastedOutputs(t *testing.T) {
	show, dump := [2]string{"ovs-vsctl.show", shown}, [2]string{"dump-flows br-int OpenFlow13", flows}
	for name, c := range map[string]struct {
		text string
		want [][2]string
	}{
		"Markdown": {"# My VM is dead\n\nWhat I see:\n\n```console\n$ ovs-vsctl show\n" + shown + "```\n\nand\n\n```\n# ovs-ofctl -O OpenFlow13 dump-flows br-int\n" + flows + "```\nThanks\n",
			[][2]string{show, dump}},
		"headings":             {"## ovs-vsctl show\n\n```\n" + shown + "```\n**`ovs-ofctl dump-flows br-int`**:\n```\n" + flows + "```\n", [][2]string{show, dump}},
		"an empty line inside": {"# ovs-ofctl dump-tlv-map br-int\n" + mapping + "# ovs-vsctl show\n" + shown, [][2]string{{"dump-tlv-map br-int OpenFlow14", mapping}, show}},
		"sentences": {"This is the output of ovs-vsctl show:\n\n" + shown + "\nThen I ran ovs-ofctl dump-flows br-int\n" + flows + "\nbut ovs-vsctl show\ngives me nothing.\n",
			[][2]string{show, dump}},
		"terminal": {"Script started on 2026-11-21\r\n\x1b[01;32mroot@node-1\x1b[00m:\x1b[01;34m~\x1b[00m# ovs-vsctl show\r\n" + strings.ReplaceAll(shown, "\n", "\r\n") +
			"root@node-1:~# date\r\nSat Nov 21\r\nroot@node-1:~# ovs-ofctl dump-flows br-int\r\n" + strings.ReplaceAll(flows, "\n", "\r\n") + "root@node-1:~# \r\n",
			[][2]string{{"node-1 ovs-vsctl.show", shown}, {"node-1 dump-flows br-int OpenFlow13", flows}}},
		"pods": {"[root@bastion ~]# oc -n openshift-ovn exec ovnkube-node-x -c nbdb -- ovs-vsctl show\n" + shown + "sh-4.4# ovs-appctl fdb/show br-int\n" + fdb + "sh-4.4#\n",
			[][2]string{{"bastion ovs-vsctl.show", shown}, {"fdb.show br-int", fdb}}},
		"kube-ovn's plugin": {"root@admin:~# kubectl ko ofctl worker-1 dump-flows br-int\n" + flows + "root@admin:~# kubectl ko vsctl worker-2 show\n" + shown +
			"root@admin:~# kubectl ko appctl worker-2 fdb/show br-int\n" + fdb + "root@admin:~# kubectl ko nbctl list logical_switch\n_uuid               : 1\n",
			[][2]string{{"worker-1 dump-flows br-int OpenFlow13", flows}, {"worker-2 ovs-vsctl.show", shown}, {"worker-2 fdb.show br-int", fdb}, {"admin ovn-nbctl.list logical_switch", "_uuid               : 1\n"}}},
		"HTML": {"<html><head><style>p { ovs-vsctl show }</style></head><body><p>Look:</p><pre><b>$ ovs-vsctl show</b>\n" + strings.ReplaceAll(shown, `"`, "&quot;") + "</pre><p>bye</p></body></html>",
			[][2]string{show}},
		"a mail":              {"On Monday, you wrote:\n> Hello\n>\n> $ ovs-vsctl show\n> " + strings.ReplaceAll(strings.TrimSpace(shown), "\n", "\n> ") + "\n>\n> Thanks\nHi\n", [][2]string{show}},
		"a part of an output": {"$ ovs-ofctl dump-flows br-int | grep table=0\n" + flows + "$ ovs-ofctl dump-flows br-int | less\n" + flows, [][2]string{dump}},
		"another output":      {"$ ovs-ofctl dump-flows br-int\novs-ofctl: br-int is not a bridge or a socket\n$ ovs-vsctl show\nok\n", nil},
		"prose":               {"Please attach ovs-appctl fdb/show br-int\nand the logs. Regards\n", nil},
		"nothing":             {"", nil},
	} {
		expect.Equal(t, found(c.text), c.want, name)
	}
}

// FuzzSplit checks that each piece is a part of the text, and that pieces do not overlap.
func FuzzSplit(f *testing.F) {
	f.Add("$ ovs-vsctl show\n" + shown)
	f.Add("<pre>$ ovs-ofctl dump-flows br-int\n" + flows + "</pre>")
	f.Add("[root@a ~]# ovs-ofctl dump-flows br-int\n" + flows + "\x1b[31m\x1b]0;x\x07")
	f.Add("```\n```\n$ ovs-appctl fdb/show br0\n" + fdb)
	f.Add("#==[ Command ]====#\n# /usr/bin/ovs-ofctl dump-flows br-int\n" + flows + "\n#==[ \x1b[31mCommand ]==#\n# /bin/df\n")
	f.Fuzz(func(t *testing.T, text string) {
		total, line := 0, 0
		for _, piece := range ticket.Split(text) {
			if piece.Line <= line {
				t.Errorf("the piece of line %d follows that of line %d", piece.Line, line)
			}
			if piece.Text == "" || piece.Run.Command.Name == "" {
				t.Errorf("line %d: a piece without a command or a text", piece.Line)
			}
			line = piece.Line
			total += len(piece.Text)
		}
		if total > 2*len(text)+2 {
			t.Errorf("%d bytes in pieces of a text of %d", total, len(text))
		}
	})
}
