// Package hostile generates texts and archives as an attacker would make them, for
// tests: they would be executed, write outside the workdir, use up memory or time, or
// never end. They are generated because some are too large to store.
package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Text is one or more hostile files that replace files of a real report.
type Text struct {
	Name  string
	Files map[string]Content // by path in the report
	// ByHand is set if the files belong into a workdir that a user filled by hand.
	ByHand bool
}

// Content is a text as a list of repeated pieces: 100 MB take little memory.
type Content []Piece

// Piece is a text that is repeated Times times, or as many texts that Each returns.
type Piece struct {
	Text  string
	Times int
	Each  func(i int) string
}

// Write writes the text.
func (c Content) Write(w io.Writer) error {
	for _, p := range c {
		if p.Each != nil {
			if err := writeEach(w, p); err != nil {
				return err
			}
			continue
		}
		unit, n := p.Text, p.Times
		for n%16 == 0 && n > 0 && len(unit) < 1<<16 {
			unit, n = strings.Repeat(unit, 16), n/16
		}
		for range n {
			if _, err := io.WriteString(w, unit); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeEach(w io.Writer, p Piece) error {
	b := bufio.NewWriterSize(w, 1<<20)
	for i := range p.Times {
		if _, err := b.WriteString(p.Each(i)); err != nil {
			return err
		}
	}
	return b.Flush()
}

// size returns the size of the text, not counting texts that Each returns.
func (c Content) size() (n int) {
	for _, p := range c {
		n += len(p.Text) * p.Times
	}
	return n
}

func times(text string, n int) Piece  { return Piece{Text: text, Times: n} }
func plain(text string) Content       { return Content{times(text, 1)} }
func many(text string, n int) Content { return Content{times(text, n)} }
func each(n int, text func(i int) string) Content {
	return Content{{Times: n, Each: text}}
}
func around(head string, c Content, tail string) Content {
	return append(append(plain(head), c...), times(tail, 1))
}

// Targets are the paths that hostile texts try to reach: Canary is a file that they
// make if they are executed, Outside a folder beside the workdir.
type Targets struct{ Canary, Outside string }

const (
	commands = "sos_commands/openvswitch/"
	flows15  = commands + "ovs-ofctl_-O_OpenFlow15_dump-flows_br-int"
	groups15 = commands + "ovs-ofctl_-O_OpenFlow15_dump-groups_br-int"
	meters15 = commands + "ovs-ofctl_-O_OpenFlow15_dump-meters_br-int"
	tlv15    = commands + "ovs-ofctl_-O_OpenFlow15_dump-tlv-map_br-int"
	confDB   = "var/lib/openvswitch/conf.db"
	manifest = "sos_reports/manifest.json"
	header   = "OFPST_FLOW reply (OF1.5) (xid=0x2):\n"
	flow     = " cookie=0x1, duration=1s, table=0, n_packets=0, n_bytes=0, idle_age=1, "
	mega     = 1 << 20
)

// Texts returns all hostile texts. schema is the schema of the OVS database, as JSON.
func Texts(p Targets, schema []byte) []Text {
	var all []Text
	add := func(name, path string, content Content) {
		all = append(all, Text{Name: name, Files: map[string]Content{path: content}})
	}
	for _, name := range BridgeNames(p) {
		all = append(all, bridge(name, schema))
	}
	for name, text := range flowTexts(p) {
		add("flows: "+name, flows15, around(header, text, ""))
	}
	for name, text := range map[string]string{
		"a group of an id beyond 32 bits": "group_id=99999999999,type=all,bucket=actions=drop\n",
		"groups that name each other":     " group_id=1,type=all,bucket=actions=group:2\n group_id=2,type=all,bucket=actions=group:1\n group_id=3,type=all,bucket=actions=group:3\n",
		"many bad groups":                 repeat(300, func(i int) string { return fmt.Sprintf(" group_id=%d,type=nonsense\n", i) }),
		"a group of a million buckets":    " group_id=7,type=select" + strings.Repeat(",bucket=actions=output:1", 100000) + "\n",
		"groups that are options":         " group_id=1,type=all,bucket=actions=--help\n--help\n",
	} {
		add("groups: "+name, groups15, plain("OFPST_GROUP_DESC reply (OF1.5) (xid=0x2):\n"+text))
	}
	for name, text := range map[string]string{
		"a meter of a million bands": "meter=1 pktps bands=\n" + strings.Repeat("type=drop rate=1\n", 300000),
		"meters of impossible ids":   "meter=0 pktps bands=\ntype=drop rate=1\nmeter=99999999999 pktps bands=\ntype=drop rate=1\nmeter=0xffffffffff kbps bands=\ntype=drop rate=99999999999999\n",
		"bands without a meter":      strings.Repeat("type=drop rate=1\n", 1000),
		"many bad meters":            repeat(300, func(i int) string { return fmt.Sprintf("meter=%d frobs bands=\ntype=drop rate=-1\n", i+1) }),
	} {
		add("meters: "+name, meters15, plain("OFPST_METER_CONFIG reply (OF1.5) (xid=0x2):\n"+text))
	}
	for name, text := range map[string]string{
		"mappings beyond the table":   "0x102 0x80 4 tun_metadata99\n0x102 0x81 4 tun_metadata4294967296\n0x102 0x82 -4 tun_metadata1\n",
		"one class for all":           repeat(64, func(i int) string { return fmt.Sprintf("0x102 0x80 124 tun_metadata%d\n", i) }),
		"a hundred thousand mappings": repeat(100000, func(i int) string { return fmt.Sprintf("%#x %#x 4 tun_metadata%d\n", i, i, i) }),
		"mappings that run commands":  "$(touch " + p.Canary + ") 0x1 4 tun_metadata0\n",
	} {
		add("TLV: "+name, tlv15, plain(text))
	}
	for name, text := range manifests(p) {
		add("manifest: "+name, manifest, text)
	}
	for name, text := range databases(schema) {
		add("database: "+name, confDB, text)
	}
	for name, text := range map[string]Content{
		"commands":       plain("#! /bin/sh\ntouch " + p.Canary + "\nrm -rf " + p.Outside + "\novs-ofctl -O OpenFlow14 add-flows br-int \"$(touch " + p.Canary + ")\"\n"),
		"mapping bomb":   plain("ovs-ofctl add-tlv-map br-int '" + strings.Repeat(",{", 200000) + "'\n"),
		"hundred MB":     many("ovs-ofctl -O OpenFlow14 add-groups br-int '/tmp/x'\n", 2*mega),
		"another bridge": plain("ovs-ofctl -O OpenFlow19 add-flows ../br \"/etc/passwd\"\novs-ofctl add-tlv-map --help '{class=1,type=1,len=4}->tun_metadata0'\n"),
		"escapes":        plain("\x1b[31movs-ofctl -O OpenFlow14 add-flows br\x1b[0m-int \"x\"\n"),
	} {
		all = append(all, Text{Name: "ovs-save: " + name, ByHand: true, Files: map[string]Content{
			"restore_flows/do_restore.sh":     text,
			"restore_flows/restore.sh":        plain("touch " + p.Canary + "\n"),
			"restore_flows/br-int.flows.dump": plain("priority=1,ip actions=drop\n"),
			"db/ovs/conf.db":                  Database(schema, "br-int"),
		}})
	}
	for name, files := range recorded() {
		all = append(all, Text{Name: "recorded: " + name, Files: files})
	}
	for name, files := range costlyTexts(schema) {
		all = append(all, Text{Name: "costly: " + name, Files: files})
	}
	return all
}

// BridgeNames returns names that no bridge should have.
func BridgeNames(p Targets) []string {
	return []string{
		"-x", "--log-file=" + p.Canary, "a;touch " + p.Canary, "$(touch " + p.Canary + ")", "`touch " + p.Canary + "`", "../br",
		"../../../outside/br-int", "/etc/br", "br\n", "br\nwarning: all is well", strings.Repeat("b", 300), "", "brücke-№1",
		"\x1b[31mred", "\x1b]0;title\x07", "\u009b2J", "\u202erb", "tcp:127.0.0.1:6653", "unix:" + p.Outside + "/br-int.mgmt",
		"a,b", "a b", "%s%n%99999d", "br'\"\\", ".", "..", "br\x7f\r", "\xff\xfe",
	}
}

// bridge returns a report of a node with br-int and a bridge of the given name.
func bridge(name string, schema []byte) Text {
	list := "br-int\n" + name + "\n"
	return Text{Name: fmt.Sprintf("bridge %.40q", name), Files: map[string]Content{
		confDB:                              Database(schema, "br-int", name),
		commands + "ovs-vsctl_-t_5_list-br": plain(list),
		manifest:                            asJSON(manifestOf(map[string]string{"ovs-ofctl -O OpenFlow15 dump-flows " + name: commands + "hostile"})),
		commands + "hostile":                plain(header + flow + "priority=1,ip actions=drop\n"),
	}}
}

func flowTexts(p Targets) map[string]Content {
	return map[string]Content{
		"nothing but actions":         plain(" actions=\n actions=drop\nactions=actions=actions=\n"),
		"escapes":                     plain(flow + "\x1b[2J\x1b]0;x\x07nonsense=\u009b1m actions=\x1b[31m\n\x1b[31mnot a flow\n"),
		"a line of 100 MB":            around("", many("x", 100*mega), "\n"+flow+"priority=1,ip actions=drop\n"),
		"a flow of 15 MB":             around(flow+"priority=1,ip actions=", many("output:1,", 15*mega/9), "drop\n"),
		"50 MB of line breaks":        many("\n", 50*mega),
		"a million lines of garbage":  many("this is no flow\n", mega),
		"an unknown action":           plain(repeat(10000, func(i int) string { return fmt.Sprintf("%spriority=%d,ip actions=frobnicate(%d)\n", flow, i, i) })),
		"a thousand unreadable flows": plain(repeat(1000, func(i int) string { return fmt.Sprintf("%spriority=%d,ip,nw_src=%d.%[2]d actions=drop\n", flow, i, i) })),
		"a thousand refused flows": plain(repeat(1000, func(i int) string {
			return fmt.Sprintf("%spriority=%d,ip actions=drop\n", strings.Replace(flow, "table=0", "table=254", 1), i)
		})),
		"flows for a table too many": plain(repeat(150, func(i int) string { return fmt.Sprintf("%spriority=%d,ip,table=255 actions=resubmit(,999)\n", flow, i) })),
		"parentheses":                plain(flow + "priority=1,ip actions=" + strings.Repeat("clone(", 100000) + strings.Repeat(")", 100000) + "\n"),
		"quotes":                     plain(flow + "in_port=\"\\\" actions=\"\n" + flow + "in_port=\"a actions=drop\n"),
		"NULs and CRs":               plain(flow + "priority=1\x00,ip actions=drop\x00\r\r\n\x00\x00\x00\n"),
		"UTF-16":                     plain("\xff\xfe" + strings.Join(strings.Split(flow+"priority=1,ip actions=drop\n", ""), "\x00")),
		"decode errors":              plain(strings.Repeat(" ***decode error: OFPBMC_BAD_FIELD***\n00000000  06 13\n", 1000)),
		"commands":                   plain(flow + "priority=1,ip actions=$(touch " + p.Canary + ")\n; touch " + p.Canary + "\n`touch " + p.Canary + "`\n"),
		"options":                    plain("--help\n-x actions=drop\n--log-file=" + p.Canary + " actions=drop\n"),
		"numbers":                    plain(flow + "priority=999999999999999999999,ip actions=output:99999999999999\n" + flow + "priority=-1 actions=set_field:0x" + strings.Repeat("f", 4096) + "->reg0\n"),
		"a delete":                   plain("delete\ndelete priority=1\n" + flow + "delete actions=drop\nadd priority=3 actions=drop\n"),
		"the same flow":              plain(strings.Repeat(flow+"priority=1,ip actions=drop\n", 20000)),
		"references to all": plain(repeat(150, func(i int) string {
			return fmt.Sprintf("%spriority=%d,ip actions=group:%d,meter:%d\n", flow, i, i*7919, i+1)
		})),
	}
}

func manifests(p Targets) map[string]Content {
	return map[string]Content{
		"deep nesting":      Content{times(`{"components":`, 100000), times("}", 100000)},
		"deeper lists":      many("[", 10*mega),
		"huge numbers":      plain(`{"version":1e999999,"components":{"report":{"plugins":{"openvswitch":{"commands":[{"truncated":1e400}]}}}}}`),
		"wrong types":       plain(`{"version":["4"],"components":{"report":[{"plugins":"x"}]}}`),
		"duplicate keys":    plain(`{"version":"4.5","version":"9","components":{"report":{"plugins":{"openvswitch":{"commands":[{"exec":"ovs-vsctl list-br","exec":"touch ` + p.Canary + `","filepath":"a","filepath":"../../` + p.Canary + `"}]}}}}}`),
		"a string of 100MB": around(`{"version":"`, many("v", 100*mega), `"}`),
		"cut off":           plain(`{"version":"4.5","components":{"report":{"plugins":{"openvsw`),
		"paths outside": asJSON(manifestOf(map[string]string{"ovs-ofctl -O OpenFlow15 dump-flows br-int": "../../../../../etc/passwd", "ovs-ofctl dump-groups br-int": "/etc/shadow",
			"ovs-appctl fdb/show br-int": p.Outside + "/x"})),
		"a hundred thousand commands": asJSON(manifestOf(func() map[string]string {
			m := map[string]string{}
			for i := range 100000 {
				m[fmt.Sprintf("ovs-ofctl dump-flows br%d", i)] = fmt.Sprintf("%sx%d", commands, i)
			}
			return m
		}())),
		"a command of 8 MB": around(`{"version":"4.8.2","components":{"report":{"plugins":{"openvswitch":{"commands":[{"exec":"`,
			many("ovs-vsctl ", 800000), `","filepath":"`+commands+`ovs-vsctl_-t_5_list-br"}]}}}}}`),
		"a version with escapes": plain(`{"version":"4.5\u001b[31m\u009b2J\nwarning: none"}`),
	}
}

func manifestOf(files map[string]string) any {
	type entry struct {
		Exec     string `json:"exec"`
		Filepath string `json:"filepath"`
	}
	list := []entry{}
	for command, path := range files {
		list = append(list, entry{"/usr/bin/" + command, path})
	}
	return map[string]any{"version": "4.8.2", "components": map[string]any{"report": map[string]any{"plugins": map[string]any{"openvswitch": map[string]any{"commands": list}}}}}
}

func databases(schema []byte) map[string]Content {
	id := func(n int) string { return fmt.Sprintf("0190fe17-d1ae-7091-a034-%012x", n) }
	root := `"Open_vSwitch":{"` + id(0) + `":{"bridges":["uuid","` + id(1) + `"]}}`
	log := func(bodies ...Content) Content {
		out := record(plain(string(schema)))
		for _, b := range bodies {
			out = append(out, record(b)...)
		}
		return out
	}
	of := func(text string) Content { return log(plain(text)) }
	return map[string]Content{
		"a length beyond all":    plain("OVSDB JSON 9223372036854775807 0000000000000000000000000000000000000000\n" + string(schema)),
		"a negative length":      plain("OVSDB JSON -5 0000000000000000000000000000000000000000\n" + string(schema)),
		"a long length later":    append(log(), times("OVSDB JSON 99999999999 0000\n{}\n", 1)),
		"headers that lie":       append(log(), times("OVSDB JSON 5242880 "+strings.Repeat("a", 40)+"\n{}\n", 200000)),
		"wrong sums":             append(log(), times(fmt.Sprintf("OVSDB JSON 5 %040d\n{\"Bridge\":{}}\n", 7), 1)),
		"sums of something else": plain(fmt.Sprintf("OVSDB JSON %d %040d\n%s\nOVSDB JSON 2 00\n{}\n", len(schema), 0, schema)),
		"nested 10000 deep":      log(Content{times(`{"Bridge":`, 10000), times("{}", 1), times("}", 10000)}),
		"nested a million deep":  log(many("[", mega)),
		"another schema":         record(plain(`{"name":"../../Open_vSwitch","version":"8.0.0","tables":{}}`)),
		"a schema with escapes":  record(plain("{\"name\":\"\\u001b[31m\\u009b2J\",\"version\":\"8.0.0\",\"tables\":{}}")),
		"a schema of lies":       append(record(plain(`{"name":"Open_vSwitch","version":"8.3.1","tables":{"Open_vSwitch":{"columns":{"bridges":{"type":{"key":{"type":"uuid","refTable":"Nowhere"},"min":9,"max":-1}}}}}}`)), record(plain("{"+root+"}"))...),
		"a schema of a number":   record(plain(`{"name":"Open_vSwitch","version":"8.3.1","tables":{"Bridge":7,"Port":{"columns":{"x":{"type":5}}}}}`)),
		"references in a circle": of(`{` + root + `,"Bridge":{"` + id(1) + `":{"name":"b","ports":["uuid","` + id(2) + `"],"mirrors":["uuid","` + id(4) + `"]}},"Port":{"` + id(2) + `":{"name":"p","interfaces":["uuid","` + id(2) + `"]}},"Mirror":{"` + id(4) + `":{"name":"m","output_port":["uuid","` + id(2) + `"],"select_src_port":["uuid","` + id(2) + `"]}}}`),
		"references to nothing":  of(`{` + root + `}`),
		// No row refers to these rows.
		"a hundred thousand rows": of(ports(func(i int) string { return fmt.Sprintf("%08x%s", uint32(i)*2654435761, id(i)[8:]) })),
		"rows that are alike":     of(ports(id)),
		"rows alike at the end":   of(ports(func(i int) string { return fmt.Sprintf("%04x%s", i&0xffff, id(i)[4:]) })),
		"many small records":      append(log(), times(record(plain(`{"_comment":"x"}`)).String(), 200000)),
		"a string of 100 MB":      log(around(`{"Open_vSwitch":{"`+id(0)+`":{"external_ids":["map",[["x","`, many("y", 100*mega), `"]]]}}}`)),
		"gzip of 1 GiB of zeros":  plain(bomb(1 << 30)),
		"gzip of gzip of gzip":    plain(packed(packed(packed(Database(schema, "br-int").String())))),
		"a UUID that is a path":   of(`{"Open_vSwitch":{"../../../etc/passwd":{"bridges":["set",[]]}}}`),
		"numbers beyond all":      of(`{` + root + `,"Bridge":{"` + id(1) + `":{"name":"b","flood_vlans":["set",[1e999,-1,99999999999999999999]]}}}`),
		"a text file":             plain("hello\n"),
		"a million line breaks":   many("\n", mega),
		"two schemas":             append(log(), record(plain(string(schema)))...),
		"a damaged middle":        append(append(log(), times("OVSDB JSON 30 0000\n{\"Bridge\":{\""+id(1)+"\":{\x00\x1b[31m\n", 1)), record(plain(`{"Bridge":{"`+id(1)+`":{"name":"x"}}}`))...),
	}
}

func ports(id func(int) string) string {
	return `{"Port":{` + strings.TrimSuffix(repeat(100000, func(i int) string {
		return fmt.Sprintf(`"%s":{"name":"p%d","interfaces":["uuid","%s"]},`, id(i+10), i, id(i))
	}), ",") + `}}`
}

func recorded() map[string]map[string]Content {
	return map[string]map[string]Content{
		"many bonds":      {commands + "ovs-appctl_bond.show": many("---- b ----\nbond_mode: balance-slb\nmember p: enabled\n  hash 1: 3 kB load\n", 20000)},
		"100 MB of bonds": {commands + "ovs-appctl_bond.show": many("x", 100*mega)},
		"learned MACs": {commands + "ovs-appctl_fdb.show_br-int": plain(repeat(100000, func(i int) string {
			return fmt.Sprintf("%5d %5d  00:00:00:%02x:%02x:%02x  1\n", 60000, i%4096, i>>16&255, i>>8&255, i&255)
		}))},
		"ports": {commands + "ovs-ofctl_-O_OpenFlow15_show_br-int": plain("OFPT_FEATURES_REPLY: dpid:ffffffffffffffff\n" + repeat(50000, func(i int) string {
			return fmt.Sprintf(" %d(\x1b[31mp%d): addr:00:00:00:00:00:01\n     config:     NO_FLOOD\n     state:      LIVE\n", i, i)
		}))},
		"routes":          {commands + "ovs-appctl_ovs.route.show": many("User: 0.0.0.0/0 dev br-int GW ::1 SRC ::\n", 50000)},
		"escapes":         {commands + "ovs-vsctl_-t_5_list_interface": plain("_uuid               : 0190fe17-d1ae-7091-a034-22ade2121dc0\nname                : \"\x1b[31m\"\n"), "etc/hostname": plain("\x1b]0;x\x07host\n"), "hostname": plain("\x1b]0;x\x07host\n")},
		"100 MB of flows": {commands + "ovs-appctl_bridge.dump-flows_--offload-stats_br-int": many("duration=1s, n_packets=0, n_bytes=0, priority=1,ip,actions=load:1->NXM_NX_REG0[],drop\n", 100*mega/86)},
	}
}

// Database returns a complete OVS database with bridges of the given names.
func Database(schema []byte, names ...string) Content {
	type row map[string]any
	tables := map[string]map[string]row{"Open_vSwitch": {}, "Bridge": {}, "Port": {}, "Interface": {}}
	var bridges []any
	for i, name := range names {
		id := func(table int) string { return fmt.Sprintf("0190fe17-d1ae-7091-%04x-%012x", table, i) }
		bridges = append(bridges, []string{"uuid", id(1)})
		tables["Bridge"][id(1)] = row{"name": name, "ports": []string{"uuid", id(2)}}
		tables["Port"][id(2)] = row{"name": name, "interfaces": []string{"uuid", id(3)}}
		tables["Interface"][id(3)] = row{"name": name, "type": "internal"}
	}
	tables["Open_vSwitch"]["0190fe17-d1ae-7091-0000-000000000000"] = row{"bridges": []any{"set", bridges}}
	return append(record(plain(string(schema))), record(asJSON(tables))...)
}

func asJSON(v any) Content {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a bug: all values are generated here
	}
	return plain(string(raw))
}

func record(body Content) Content {
	body = append(body[:len(body):len(body)], times("\n", 1))
	sum := sha1.New()
	_ = body.Write(sum) // a hash returns no error
	return around(fmt.Sprintf("OVSDB JSON %d %x\n", body.size(), sum.Sum(nil)), body, "")
}

// String returns the text.
func (c Content) String() string {
	var b strings.Builder
	_ = c.Write(&b)
	return b.String()
}

func repeat(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

// bomb returns compressed zeros.
func bomb(size int) string {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_ = many("\x00", size).Write(w)
	_ = w.Close()
	return out.String()
}

func packed(content string) string {
	return packedWith(func(w io.Writer) error { _, err := io.WriteString(w, content); return err })
}

func packedWith(write func(io.Writer) error) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_ = write(w) // a buffer returns no error
	_ = w.Close()
	return out.String()
}
