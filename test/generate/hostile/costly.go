package hostile

import (
	"fmt"
	"io"
	"strings"

	"ovs-offline/test/check/sweep"
)

// Texts and archives that take quadratic time or a multiple of their size in memory,
// if a reader compares each entry with each other one, keeps all of them, or trusts
// announced sizes.

func costlyTexts(schema []byte) map[string]map[string]Content {
	list := commands + "ovs-vsctl_-t_5_list-br"
	all := map[string]map[string]Content{
		"a bridge a hundred thousand times": {list: many("a\n", 1<<17)},
		"a hundred thousand bridges":        {list: each(100000, func(i int) string { return fmt.Sprintf("b%d\n", i) })},
		"bridges that mangle alike":         {list: each(20000, func(i int) string { return "b" + alike(i) + "r\n" })},
		"flags of 16 MB": {commands + "ovs-ofctl_-O_OpenFlow15_show_br-int": around(
			"OFPT_FEATURES_REPLY: dpid:ffffffffffffffff\n 1(p1): addr:00:00:00:00:00:01\n     config:     ", many("x ", 8*mega-100), "\n")},
		"a printed database of columns": {confDB: plain("no database\n"), commands + "ovsdb-client_-f_list_dump": around(
			"Bridge table\n_uuid               : 0190fe17-d1ae-7091-a034-22ade2121dc0\nname                : br-int\n", many("a : \n", 8*mega), "")},
	}
	const dumpFlows = commands + "ovs-appctl_bridge.dump-flows_--offload-stats_br-int"
	all["sessions of unknown interfaces"] = map[string]Content{
		commands + "ovs-appctl_bfd.show": each(100000, func(i int) string { return fmt.Sprintf("---- x%d ----\n\tForwarding: true\n", i) }),
		commands + "ovs-appctl_cfm.show": each(100000, func(i int) string { return fmt.Sprintf("---- x%d ----\n", i) }),
	}
	all["hidden flows"] = map[string]Content{dumpFlows: each(300000, func(i int) string {
		return fmt.Sprintf("duration=1s, n_packets=0, n_bytes=0, priority=180000,ip,nw_src=10.%d.%d.%d,actions=drop\n", i>>16, i>>8&255, i&255)
	})}
	all["loads"] = map[string]Content{dumpFlows: each(500000, func(i int) string {
		return fmt.Sprintf("duration=1s, n_packets=0, n_bytes=0, priority=1,ip,nw_src=10.%d.%d.%d,actions=load:%d->NXM_NX_REG0[],drop\n", i>>16, i>>8&255, i&255, i)
	})}
	const igmp = flow + "priority=1,igmp"
	lines := sweep.Count(20, 4) * mega
	for name, text := range map[string]Content{
		"set_fields without an end": around(flow+"priority=1,ip actions=", many("set_field:", 400000), "0x1/0x1->reg0\n"),
		"a match of 15 MB":          around(igmp, many(",a", 7*mega), " actions=drop\n"),
		"actions of 15 MB":          around(igmp+" actions=", many("a,", 7*mega), "drop\n"),
		"millions of lines":         many("x\n", lines),
	} {
		all["flows: "+name] = map[string]Content{flows15: around(header, text, "")}
	}
	all["groups: millions of lines"] = map[string]Content{groups15: many("x\n", lines)}
	all["meters: millions of lines"] = map[string]Content{meters15: many("x\n", lines)}
	all["TLV: a line of 16 MB"] = map[string]Content{tlv15: many("a ", 8*mega-100)}
	for name, db := range costlyDatabases(schema) {
		all["database: "+name] = map[string]Content{confDB: db}
	}
	return all
}

// alike returns i in characters that sos replaces with the same character.
func alike(i int) string {
	digits := "!#%&*+=?@^"
	text := ""
	for _, c := range fmt.Sprint(i) {
		text += string(digits[c-'0'])
	}
	return text
}

func costlyDatabases(schema []byte) map[string]Content {
	id := func(n int) string { return fmt.Sprintf("%08x-d1ae-4091-a034-%012x", uint32(n)*2654435761, n) }
	first := record(plain(string(schema)))
	grown := append(Content{}, Database(schema, "br-int")...)
	for i := range 8000 {
		grown = append(grown, record(plain(fmt.Sprintf(`{"_is_diff":true,"Bridge":{"0190fe17-d1ae-7091-0001-000000000000":{"external_ids":["map",[["k%d","v"]]]}}}`, i)))...)
	}
	chain := record(plain(`{"name":"Open_vSwitch","version":"8.3.0","tables":{"Open_vSwitch":{"columns":{}},"T":{"columns":{"next":{"type":{"key":{"type":"uuid","refTable":"T"}}}},"isRoot":true}}}`))
	chain = append(chain, times("OVSDB JSON 30 0000\n{\"T\":{\"x\n", 1))
	chain = append(chain, record(plain(`{"T":{`+strings.TrimSuffix(repeat(20000, func(i int) string {
		return fmt.Sprintf(`"%s":{"next":["uuid","%s"]},`, id(i), id(i+1))
	}), ",")+`}}`))...)
	member := strings.Replace(record(plain(fmt.Sprintf(`{"server_id":"%s","cluster_id":"%s","name":"Open_vSwitch","local_address":"tcp:127.0.0.1:6644","prev_term":1,"prev_index":1,"prev_eid":"%s","prev_data":[%s,{}],"prev_servers":{}}`,
		id(1), id(2), id(3), schema))).String(), "OVSDB JSON", "OVSDB CLUSTER", 1)
	entry := func(term, index int) string {
		return strings.Replace(record(plain(fmt.Sprintf(`{"term":%d,"index":%d}`, term, index))).String(), "OVSDB JSON", "OVSDB CLUSTER", 1)
	}
	const n = 60000
	return map[string]Content{
		"a set that grows":       grown,
		"a chain of needs":       chain,
		"entries that come back": append(plain(member+repeat(n, func(i int) string { return entry(1, i+2) })), times(entry(2, n+1), n)),
		"a million short ones":   append(first, times("OVSDB JSON 1 a\n", mega)),
		"a gzip'd lie": plain(packedWith(func(w io.Writer) error {
			if _, err := io.WriteString(w, "OVSDB JSON 99999999999 "+strings.Repeat("a", 40)+"\n"); err != nil {
				return err
			}
			return many("\x00", 1<<30).Write(w)
		})),
	}
}

func costlyArchives() []Archive {
	packed := func(name string, n int, of func(i int) member) Archive {
		return Archive{Name: name, Write: func(w io.Writer) error {
			return zst(w, func(w io.Writer) error { return packEach(w, n, of) })
		}}
	}
	dump := header + flow + "priority=1,ip actions=drop\n"
	return []Archive{
		packed("a name of 900 kB", 1, func(int) member { return file(strings.Repeat("a/", 450000)+commands+"ovs-vsctl_-t_5_list-br", "br0\n") }),
		packed("names of a thousand folders", 15000, func(i int) member { return file(strings.Repeat("a/", 1000)+fmt.Sprint(i)+"/"+commands+"x", "x") }),
		packed("19,000 reports", 19000, func(i int) member { return file(fmt.Sprintf("sosreport-%d/%sx", i, commands), "x") }),
		packed("200,000 links in reports", 200000, func(i int) member { return link(fmt.Sprintf("sosreport-%d/%sx", i, commands), "y") }),
		packed("19,000 nodes", 19000, func(i int) member { return file(fmt.Sprintf("mg/node%d_ovs_ofctl_dump_flows_br_int", i), dump) }),
		packed("19,000 bridges of a node", 19000, func(i int) member { return file(fmt.Sprintf("mg/node1_ovs_ofctl_dump_flows_br%d", i), dump) }),
	}
}
