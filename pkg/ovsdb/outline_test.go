package ovsdb_test

import (
	"regexp"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
)

const shown = `4b6b0d73-b824-4d6b-9ec7-584b4706f5c9
    Manager "ptcp:6640"
        is_connected: true
    Bridge br-int
        Controller "tcp:127.0.0.1:6633"
            is_connected: true
        fail_mode: secure
        Port bond0
            tag: 7
            Interface eth1
                error: "could not open network device eth1 (No such device)"
            Interface "eth 2"
        Port br-int
            Interface br-int
                type: internal
    Bridge "br ex"
        Port patch
            Interface patch
                type: patch
                options: {peer=other}
    ovs_version: "3.1.0"
`

// TestShowOfASwitch reads ovs-vsctl show, also with other indentation and lines around it.
func TestShowOfASwitch(t *testing.T) {
	for name, text := range map[string]string{
		"as printed":                         shown,
		"tabs":                               strings.ReplaceAll(shown, "    ", "\t"),
		"a quotation":                        strings.ReplaceAll(shown, "\n", "\r\n"),
		"warnings":                           "2026-11-21T10:00:00Z|00001|ovsdb|WARN|slow: x\n" + shown + "\nthanks\n",
		"no indentation":                     regexp.MustCompile(`(?m)^ +`).ReplaceAllString(shown, ""),
		"one blank for all indentation":      regexp.MustCompile(`(?m)^ +`).ReplaceAllString(shown, " "),
		"a column one level too high":        strings.ReplaceAll(shown, "                type:", "            type:"),
		"each line followed by an empty one": strings.ReplaceAll(shown, "\n", "\n\n"),
		"a long line":                        strings.Repeat("x", 3<<20) + "\n" + shown,
	} {
		outline, err := ovsdb.Shown(strings.NewReader(text))
		if err != nil {
			t.Fatal(name, err)
		}
		tables := outline.Records()
		count := map[string]int{}
		for table, records := range tables {
			count[table] = len(records)
		}
		expect.Equal(t, count, map[string]int{"Open_vSwitch": 1, "Manager": 1, "Bridge": 2, "Controller": 1, "Port": 3,
			"Interface": 4}, name)
		expect.Equal(t, tables["Open_vSwitch"][0].Column("ovs_version"), "3.1.0", name)
		expect.Equal(t, tables["Bridge"][0].Column("fail_mode"), "secure", name)
		bond := tables["Port"][0]
		expect.Equal(t, bond.Column("interfaces"), "["+tables["Interface"][0].UUID+", "+tables["Interface"][1].UUID+"]", name)
		expect.Equal(t, bond.Column("tag"), "7", name)
		expect.Equal(t, tables["Interface"][1].Column("name"), "eth 2", name)
		expect.Equal(t, tables["Interface"][3].Column("options"), "{peer=other}", name)
		expect.Equal(t, tables["Controller"][0].Column("target"), "tcp:127.0.0.1:6633", name)
	}
	for _, text := range []string{"", "ovs-vsctl: unix:/run/db.sock: database connection failed\n",
		"a Bridge over troubled water\n"} {
		outline, err := ovsdb.Shown(strings.NewReader(text))
		if outline != nil || err != nil {
			t.Errorf("%q: %+v, %v, want nothing", text, outline, err)
		}
	}
}

// FuzzShown checks that records of any text refer only to each other.
func FuzzShown(f *testing.F) {
	f.Add(shown)
	f.Add("Bridge a\nPort b\nInterface c\n")
	f.Add("\x1b[1m Bridge \"\\u0000\"\n  Port \"x\n")
	f.Fuzz(func(t *testing.T, text string) {
		outline, err := ovsdb.Shown(strings.NewReader(text))
		if outline == nil || err != nil {
			return
		}
		tables := outline.Records()
		known := map[string]bool{}
		for _, records := range tables {
			for _, record := range records {
				if known[record.UUID] {
					t.Fatalf("two records have the UUID %s", record.UUID)
				}
				known[record.UUID] = true
			}
		}
		for _, bridge := range tables["Bridge"] {
			for _, id := range strings.Split(strings.Trim(bridge.Column("ports"), "[]"), ", ") {
				if id != "" && !known[id] && len(tables["Port"]) > 0 {
					t.Errorf("bridge %q refers to %q, which is no record", bridge.Column("name"), id)
				}
			}
		}
	})
}
