package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestPastedTextsAreReadToTheirEnd checks what is taken of texts whose outputs stand far below their beginning, beside lines of logs or
// more than once, and what is named as lost.
func TestPastedTextsAreReadToTheirEnd(t *testing.T) {
	const (
		dump  = "[root@n1 ~]# ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=output:2\n"
		later = "[root@n1 ~]# ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=drop\n"
		part  = "[root@n1 ~]# ovs-ofctl dump-flows br1 table=0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=drop\n"
		log   = "2026-05-07T06:44:05.386Z|00011|bridge|INFO|bridge br0: added interface eth0 on port 1\n"
		reply = "NXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=drop\n"
	)
	prose := strings.Repeat("The pods can not reach the service, and this is a line of words.\n", 100)
	for name, c := range map[string]struct{ file, text, flows, says string }{
		"prose above":              {"a.md", prose + dump, "output:2", ""},
		"prose above in a .rst":    {"a.rst", prose + dump, "output:2", ""},
		"no extension":             {"ticket", prose + dump, "output:2", ""},
		"a log above":              {"a.txt", log + "\n" + dump, "output:2", ""},
		"a log below":              {"a.txt", dump + "and the log:\n\n" + log, "output:2", ""},
		"twice":                    {"a.md", dump + later, "actions=drop", "line 4: the last of 2 outputs of one command, which is used"},
		"a part":                   {"a.md", dump + part, "output:2", "line 4: the output of ovs-ofctl dump-flows is not whole, and what is not there may decide: it is limited to: table=0"},
		"UTF-16":                   {"a.txt", string(utf16LE(prose + dump)), "output:2", ""},
		"a reply in UTF-16":        {"br0.txt", string(utf16LE(strings.Replace(reply, "drop", "output:2", 1))), "output:2", ""},
		"replies without commands": {"br0.txt", reply + strings.Replace(reply, "drop", "output:2", 1), "output:2", "replies without command lines"},
	} {
		nodes, found, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{c.file: c.text}), c.file))
		if err != nil || len(nodes) != 1 {
			t.Errorf("%s: %v %v", name, nodes, err)
			continue
		}
		flows, err := os.ReadFile(filepath.Join(dir, "restore_flows", "br0.flows.dump"))
		if err != nil || !strings.Contains(string(flows), c.flows) {
			t.Errorf("%s: %v: %s", name, err, flows)
		}
		said := strings.Join(found.Lost, "\n")
		for _, node := range nodes {
			for _, collection := range node.Collections {
				said += strings.Join(collection.Remarks, "\n")
			}
			if hasLog := strings.Contains(node.kinds(), "host"); hasLog != strings.Contains(c.text, log) {
				t.Errorf("%s: %s", name, node.kinds())
			}
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: nothing says %q: %s", name, c.says, said)
		}
	}
	_, _, _, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": prose + "$ ovn-nbctl show\nswitch a\n"}), "a.md"))
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "nothing uses the outputs of ovn-nbctl show") {
		t.Error(err)
	}
}

// utf16LE returns a text as PowerShell writes it into a file.
func utf16LE(text string) []byte {
	all := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
		all = append(all, byte(unit), byte(unit>>8))
	}
	return all
}

// TestStatusesOfOneNodeStayTogether collects what cluster/status printed on several servers: in one ticket, and in a file each. No output
// may take the place of another one.
func TestStatusesOfOneNodeStayTogether(t *testing.T) {
	status := func(id string) string {
		return id + "\nName: OVN_Southbound\nCluster ID: a309 (a3090f2b-0246-4daa-a14e-40e369dd955e)\nServer ID: " + id + " (" + id + "a898-f5f1-4f4a-b049-f1926274d4f3)\nStatus: cluster member\n"
	}
	const command = "# ovs-appctl -t /var/run/ovn/ovnsb_db.ctl cluster/status OVN_Southbound\n"
	for name, files := range map[string]map[string]string{
		"one ticket":            {"a.md": "No leader:\n\n" + command + status("0001") + "\nand\n" + command + status("0002") + "and later\n" + command + status("0003")},
		"without command lines": {"a.txt": "Look:\n```\n" + status("0001") + "```\n```\n" + status("0002") + "```\n```\n" + status("0003") + "```\n"},
		"a file each":           {"a.txt": status("0001"), "b.txt": status("0002"), "c.txt": status("0003")},
	} {
		nodes, _, dir, err := takeFiles(t, Options{}, folder(t, files))
		if err != nil || len(nodes) != 1 {
			t.Errorf("%s: %v %v", name, nodes, err)
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "host", "cluster.status.sb"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, id := range []string{"0001", "0002", "0003"} {
			if !strings.Contains(string(text), "Server ID: "+id) {
				t.Errorf("%s: %s is missing in %s", name, id, text)
			}
		}
	}
}
