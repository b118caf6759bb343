package cmd

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// canaries are words, addresses and MAC addresses that exist nowhere else.
type canaries struct{ words, addresses, macs []string }

func (c *canaries) word() string {
	c.words = append(c.words, fmt.Sprintf("zqcanary%dx", len(c.words)))
	return c.words[len(c.words)-1]
}

func (c *canaries) address() string {
	c.addresses = append(c.addresses, fmt.Sprintf("203.%d.113.%d", 1+len(c.addresses)/200, 1+len(c.addresses)%200))
	return c.addresses[len(c.addresses)-1]
}

func (c *canaries) mac() string {
	c.macs = append(c.macs, fmt.Sprintf("52:54:%02x:22:%02x:90", 16+len(c.macs)/200, 16+len(c.macs)%200))
	return c.macs[len(c.macs)-1]
}

// text returns a word, an address and a MAC address in one text.
func (c *canaries) text() string {
	return c.word() + "-a " + c.address() + `\n` + c.address() + " " + c.mac() + ", " + c.word()
}

// table is a table of a schema of OVSDB (RFC 7047, section 3.2).
type table struct {
	Columns map[string]struct{ Type any }
}

// rowOf returns a row with canaries in each column that holds texts.
func (c *canaries) rowOf(of table) map[string]any {
	row := map[string]any{}
	isText := func(kind any) bool {
		if object, ok := kind.(map[string]any); ok && object["enum"] == nil && object["refTable"] == nil {
			kind = object["type"]
		}
		return kind == "string"
	}
	for _, name := range slices.Sorted(maps.Keys(of.Columns)) {
		kind, isObject := of.Columns[name].Type.(map[string]any)
		switch {
		case !isObject && isText(of.Columns[name].Type):
			row[name] = c.text()
		case isObject && kind["value"] != nil && isText(kind["key"]) && isText(kind["value"]):
			row[name] = []any{"map", [][]any{{c.word(), c.text()}, {c.address(), c.mac()}}}
		case isObject && kind["value"] != nil && isText(kind["value"]):
			row[name] = []any{"map", [][]any{{1, c.text()}}}
		case isObject && kind["value"] == nil && isText(kind["key"]):
			row[name] = []any{"set", []any{c.text(), c.word()}}
		}
	}
	return row
}

// fill writes a database of a schema, with a row of canaries in each table.
func (c *canaries) fill(t *testing.T, schema, path string) {
	t.Helper()
	text := files.Read(t, schema)
	var of struct{ Tables map[string]table }
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	changes := map[string]any{"_date": 1700000000000, "_comment": "ovn-nbctl: " + c.text()}
	for i, name := range slices.Sorted(maps.Keys(of.Tables)) {
		changes[name] = map[string]any{fmt.Sprintf("%08x-0000-4000-8000-00000000%04x", 0xabcd0000+i, i): c.rowOf(of.Tables[name])}
	}
	body, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	body = append(body, '\n')
	ovs.Run(t, "ovsdb-tool", "create", path, schema)
	record := fmt.Sprintf("OVSDB JSON %d %x\n%s", len(body), sha1.Sum(body), body)
	files.Write(t, path, files.Read(t, path)+record)
}

// flows returns flows with canaries in actions: what ovn-controller writes, and what nothing knows.
func (c *canaries) flows() string {
	dotted := func(b ...byte) string { return strings.ReplaceAll(net.HardwareAddr(b).String(), ":", ".") }
	address := func() []byte { return netip.MustParseAddr(c.address()).AsSlice() }
	mac := func() []byte { m, _ := net.ParseMAC(c.mac()); return m }
	option := func(code int, value []byte) string {
		return dotted(append([]byte{byte(code), byte(len(value))}, value...)...)
	}
	wide := func(code int, value []byte) string {
		return dotted(append([]byte{0, byte(code), 0, byte(len(value))}, value...)...)
	}
	number := func(n int) string { return fmt.Sprintf("00.00.00.%02x.00.00.00.00", n) }
	label := func(words ...string) (all []byte) {
		for _, word := range words {
			all = append(append(all, byte(len(word))), word...)
		}
		return append(all, 0)
	}
	setField := func(header string, value []byte) string {
		size := (4 + 4 + len(value) + 7) / 8 * 8
		return fmt.Sprintf("00.19.00.%02x.%s.%s", size, header, dotted(append(slices.Clone(value), make([]byte, size-8-len(value))...)...))
	}
	hexOf := func(b []byte) string { return "0x" + strings.TrimLeft(hex.EncodeToString(b), "0") }
	const place = "00.01.06.04.00.00.00.00"
	six := func() []byte {
		return append(append([]byte{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0}, address()...), nil...)
	}
	var all strings.Builder
	for _, actions := range []string{
		"userdata=" + number(7) + ".01.06." + dotted([]byte("acl-"+c.word()+"-"+c.address())...),
		"userdata=" + number(2) + "." + place + "." + dotted(address()...) + "." + option(15, []byte(c.word()+".example")) + "." +
			option(6, append(address(), address()...)) + "." + option(121, append([]byte{24, 10, 20, 30}, address()...)) + "." +
			option(119, label(c.word(), c.word())) + "." + option(66, []byte(c.word())) + "." + option(12, []byte("host-"+c.word())) + "." +
			option(200, []byte(c.word())),
		"userdata=" + number(5) + "." + place + "." + wide(2, mac()) + "." + wide(23, six()) + "." + wide(24, []byte(c.word())) + "." +
			wide(39, label(c.word())) + "." + wide(77, []byte(c.word())),
		"userdata=" + number(15) + ".00.00.00.00." + wide(1, []byte(c.address()+":80")) + "." + wide(3, []byte(c.word())),
		"userdata=" + number(10) + "." + setField("80.00.16.04", address()) + "." + setField("80.00.06.06", mac()) + "." +
			setField("00.01.00.04", address()),
		"userdata=" + number(22) + ".ff.ff.00.18.00.00.23.20.00.07.00.2f.80.00.06.06.00.00." + dotted(mac()...),
		"userdata=" + number(22) + ".ff.ff.00.18.00.00.23.20.00.10." + dotted(append(address(), address()...)...) + "." + dotted(mac()...),
		"userdata=" + number(99) + "." + dotted(append(address(), mac()...)...) + "." + dotted([]byte(c.word())...),
		"userdata=" + dotted([]byte(c.word())...),
		"note:" + dotted([]byte(c.word())...) + ".00.00." + dotted(address()...),
		"note:01.02." + dotted(append(mac(), address()...)...),
		"set_field:" + hexOf(mac()) + "->eth_dst", "load:" + hexOf(mac()) + "->NXM_NX_ARP_SHA[]",
		"set_field:" + hexOf(address()) + "->reg0", "load:" + hexOf(address()) + "->NXM_NX_REG5[]", "load:" + hexOf(address()) + "->NXM_OF_IP_SRC[]",
		"learn(table=3,load:" + hexOf(address()) + "->NXM_OF_ARP_SPA[])", "set_field:" + hexOf(six()) + "->xxreg1",
		"ct(commit,nat(src=" + c.address() + ":1-2))", "set_tunnel:0x1,output:" + c.word(),
	} {
		if strings.HasPrefix(actions, "userdata=") {
			actions = "controller(reason=no_match," + actions + ")"
		}
		fmt.Fprintf(&all, " cookie=0x1, duration=1s, table=9, n_packets=1, n_bytes=1, priority=1,ip,reg5=%s,nw_src=%s actions=%s\n",
			hexOf(address()), c.address(), actions)
	}
	return all.String()
}

// TestCanariesDoNotSurvive plants words, addresses and MAC addresses in each column of text of each table, in logs, actions,
// names of files and the manifest, and looks for them in the anonymised bundle in many spellings.
func TestCanariesDoNotSurvive(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	s := newSession(t, engines.Get(t, engines.Process))
	c := &canaries{}
	source := filepath.Join(s.dir, "source-"+c.word())
	if err := os.MkdirAll(source, 0o700); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(source, "sosreport-compute1-2026-11-21-kdplive.tar.xz")
	files.Write(t, report, files.Read(t, "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"))
	folder := filepath.Join(s.dir, "wd")
	s.run("collect", report)
	for path, schema := range map[string]string{
		"ovs/conf.db": "openvswitch/vswitch", "ovn_nb/ovnnb_db.db": "ovn/ovn-nb", "ovn_sb/ovnsb_db.db": "ovn/ovn-sb",
	} {
		path = filepath.Join(folder, "db", path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		c.fill(t, "/usr/share/"+schema+".ovsschema", path)
	}
	dump := filepath.Join(folder, "restore_flows/br-int.flows.dump")
	files.Write(t, dump, files.Read(t, dump)+c.flows())
	var log strings.Builder
	for range 20 {
		const at = "2026-11-21T23:43:10.123Z|00012|"
		fmt.Fprintf(&log, at+"binding|INFO|Claiming lport %s for this chassis: %s\n", c.word(), c.text())
		fmt.Fprintf(&log, at+"jsonrpc|DBG|{\"id\":1,\"name\":\"%s\\n%s\",\"url\":\"http://x/?ip%%3D%s&m=%s\"}\n",
			c.word(), c.address(), c.address(), strings.ReplaceAll(c.mac(), ":", "%3A"))
		fmt.Fprintf(&log, "23:43:10.123 IP %s.443 > %s.5000: Flags [S], \x1b[31m%s\x1b[0m ip-%s\n",
			c.address(), c.address(), c.address(), strings.ReplaceAll(c.address(), ".", "-"))
	}
	for _, path := range []string{
		"host/logs/ovn-controller/" + c.word() + ".log", "db/ovn_sb/members/" + c.word() + ".status",
		"recorded/" + c.word() + "-notes.txt", "recorded/bridges/" + c.word() + "/show", "recorded/" + c.word() + "/" + c.word(),
		"recorded/namespaces/" + c.word() + "/ip.address", "host/devices/" + c.word() + "/ethtool.features",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		files.Write(t, path, log.String())
	}
	hidden := filepath.Join(folder, "host/logs/ovn-controller/old.log.gz")
	files.Write(t, hidden, c.word())
	bundle := filepath.Join(s.dir, "case.ovs-offline")
	said := s.run("save", "--anonymise", bundle)
	for _, want := range []string{"old.log.gz is left out", "are not understood: zeros are in their place"} {
		if !strings.Contains(said, want) {
			t.Errorf("save does not say %q: %s", want, said)
		}
	}
	unpacked := filepath.Join(s.dir, "unpacked")
	if err := os.Mkdir(unpacked, 0o700); err != nil {
		t.Fatal(err)
	}
	ovs.Run(t, "tar", "--zstd", "-xf", bundle, "-C", unpacked)
	wanted := map[string]string{}
	for _, word := range c.words {
		wanted[word], wanted[inOctets(word)], wanted[strings.ToUpper(word)] = word, word, word
	}
	for _, text := range c.addresses {
		for _, spelled := range addressSpellings(netip.MustParseAddr(text)) {
			wanted[spelled] = text
		}
	}
	for _, text := range c.macs {
		m, _ := net.ParseMAC(text)
		for _, spelled := range macSpellings(m) {
			wanted[spelled] = text
		}
	}
	t.Logf("%d words, %d addresses and %d MAC addresses were planted", len(c.words), len(c.addresses), len(c.macs))
	search(t, unpacked, wanted)
	anywhere := regexpOf(c.words)
	eachFile(t, unpacked, func(path, content string) {
		for _, text := range []string{path, content} {
			if at := anywhere.FindStringIndex(text); at != nil {
				t.Errorf("%s: %q", path, text[max(0, at[0]-60):at[1]])
			}
		}
	})
}
