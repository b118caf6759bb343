package page_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// hostileNames returns 40 names that would become markup, run, or break the layout. What they would run calls hostile,
// which is no function: the page would throw an exception.
func hostileNames() []string {
	long := strings.Repeat("x", 10_000)
	return []string{
		`<script>hostile()</script>`, `</script><script>hostile()</script>`, `<img src=x onerror=hostile()>`,
		`<svg onload=hostile()>`,
		`"><script>hostile()</script>`, `'><img src=x onerror=hostile()>`, `" onmouseover="hostile()" x="`,
		`' onfocus='hostile()' autofocus='`,
		`javascript:hostile()`, `data:text/html,<script>hostile()</script>`, `<iframe src="javascript:hostile()"></iframe>`,
		`<a href="javascript:hostile()">click</a>`,
		`<style>*{display:none}</style>`, `<link rel=stylesheet href=http://192.0.2.1/x.css>`,
		`<meta http-equiv=refresh content="0;url=http://192.0.2.1/">`, `<base href=http://192.0.2.1/>`,
		`<form action=http://192.0.2.1/><input autofocus onfocus=hostile()>`, `<object data=http://192.0.2.1/x></object>`,
		`<embed src=http://192.0.2.1/x>`, `<template><script>hostile()</script></template>`,
		`--><script>hostile()</script><!--`, `]]><script>hostile()</script>`, `{{.Case}}`, `${hostile()}`,
		`<plaintext>`, `<textarea>`, `</title></style></noscript></textarea><script>hostile()</script>`,
		`&lt;script&gt;hostile()&lt;/script&gt;`,
		`%3Cscript%3Ehostile()%3C/script%3E`, `#/nodes/..%2F..%2F%ZZ?q=%`, `__proto__`, `constructor`,
		"\u202etpircs\u202c rtl", "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627", "a\u0000b\u001b[31mc\u0007",
		"line\nfeed\r\ttab",
		long, strings.Repeat("w ", 5_000), strings.Repeat("\u0301", 500), strings.Repeat("\U0001F469\u200D\U0001F4BB", 300),
	}
}

// renaming gives names in the databases of a node hostile names.
type renaming struct {
	names []string
	given map[string]string
}

// renamed returns the name that takes the place of another: one of the hostile names, and the other one, so that names
// stay different.
func (r *renaming) renamed(name string) string {
	if r.given[name] == "" {
		r.given[name] = r.names[len(r.given)%len(r.names)] + name
	}
	return r.given[name]
}

// columns are the columns of the northbound database, the southbound one and that of Open vSwitch whose texts are
// names.
var columns = map[string]bool{"name": true, "logical_port": true, "external_ids": true, "options": true,
	"hostname": true}

// database gives the rows of a database file other names.
func (r *renaming) database(t *testing.T, file string) {
	t.Helper()
	var out strings.Builder
	records := strings.Split(strings.TrimSuffix(files.Read(t, file), "\n"), "\n")
	for i := 1; i < len(records); i += 2 {
		var record map[string]any
		if err := json.Unmarshal([]byte(records[i]), &record); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if i > 1 { // the first is the schema
			r.record(record)
		}
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(recordOf(string(text) + "\n"))
	}
	files.Write(t, file, out.String())
}

// drawn are the tables whose rows each page shows by name: they get names first, so that each name is given to one of
// them.
var drawn = []string{"Logical_Switch_Port", "Logical_Switch", "Logical_Router", "Load_Balancer", "Port_Binding"}

// record renames what has a name of its own, or names something of those by its external_ids. It goes through the
// record in an order that only depends on names, so that the same things get the same names in each run.
func (r *renaming) record(record map[string]any) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(record)),
		func(table string) bool { return slices.Contains(drawn, table) })
	for _, table := range slices.Concat(drawn, others) {
		byID, ok := record[table].(map[string]any)
		if !ok || table == "Bridge" || table == "Datapath" || table == "Open_vSwitch" ||
			strings.HasPrefix(table, "Chassis") || strings.HasSuffix(table, "_Global") {
			continue
		}
		rows := slices.SortedFunc(maps.Values(byID), func(a, b any) int { return strings.Compare(nameIn(a), nameIn(b)) })
		for _, row := range rows {
			values, _ := row.(map[string]any)
			for _, column := range slices.Sorted(maps.Keys(values)) {
				if columns[column] {
					values[column] = r.value(column, values[column])
				}
			}
		}
	}
}

// nameIn returns the name of a row.
func nameIn(row any) string {
	values, _ := row.(map[string]any)
	return fmt.Sprint(values["name"], values["logical_port"], values["match"])
}

// kept are keys whose values OVN reads, and which are no names.
var kept = map[string]bool{"router-port": false, "iface-id": false, "peer": false, "name": false,
	"k8s.ovn.org/owner": false, "k8s.ovn.org/name": false, "logical-switch": true, "logical-router": true}

func (r *renaming) value(column string, value any) any {
	if text, ok := value.(string); ok && column != "options" && column != "external_ids" {
		return r.renamed(text)
	}
	list, ok := value.([]any)
	if !ok || len(list) != 2 {
		return value
	}
	pairs, _ := list[1].([]any)
	for _, pair := range pairs {
		if both, ok := pair.([]any); ok && len(both) == 2 {
			key, _ := both[0].(string)
			if text, isText := both[1].(string); isText {
				if fixed, known := kept[key]; known && !fixed {
					both[1] = r.renamed(text)
				}
			}
		}
	}
	return value
}

// elementsOfNames finds elements of kinds that the page never makes, and elements with an attribute that runs a script
// or leads out of the page.
const elementsOfNames = `[...document.querySelectorAll("body *")].filter((one) => one.matches("iframe, img, object, embed, base, link, textarea, plaintext, template, body style, body meta") || [...one.attributes].some((attribute) => /^on|^autofocus$/.test(attribute.name) || /^(href|src|action)$/.test(attribute.name) && !attribute.value.startsWith("#"))).map((one) => one.outerHTML)`

// TestHostileNames gives the ports, switches, routers, policies and services of a case 40 hostile names, and its
// folders and logs too. Nothing runs, nothing is asked of a network, no name becomes an element, and each view stays
// within the window.
func TestHostileNames(t *testing.T) {
	browserProgram(t)
	folder, nodes := labNodes(t)
	names := hostileNames()
	for i, node := range []string{"worker1", "worker2", "worker3"} {
		wd := nodes[node]
		r := &renaming{names: names, given: map[string]string{}}
		for _, kind := range []workdir.Kind{workdir.NB, workdir.SB, workdir.OVS} {
			r.database(t, wd.Database(kind))
		}
		t.Logf("%s: %d names", node, len(r.given))
		var log strings.Builder
		for number, name := range names {
			fmt.Fprintf(&log, "2026-11-27T14:02:%02d.000Z|%05d|binding|WARN|%s\n", number, number,
				strings.ReplaceAll(name, "\n", " "))
		}
		files.Write(t, wd.HostLog("ovn", "ovn-controller.log"), log.String())
		hostile := []string{`<img src=x onerror=hostile()>`, "\u202e\" onload=hostile() " + strings.Repeat("y", 180),
			`&lt;b&gt;'"`}[i]
		if err := os.Rename(wd.Path(), filepath.Join(folder, hostile)); err != nil {
			t.Fatal(err)
		}
	}
	file := writePage(t, folder)
	b := browse(t, file, 1000)
	addresses := b.addresses()
	t.Logf("%d views", len(addresses))
	shown := ""
	for _, width := range sweep.Rows([]int64{1000, 1600}, func(width int64) bool { return width == 1000 }) {
		b.resize(width)
		for _, address := range addresses {
			b.goTo(address)
			b.checkLooks(address)
			if made := eval[[]string](b, elementsOfNames); len(made) > 0 {
				t.Errorf("%s: names became elements: %.300q", address, made)
			}
			if address != "#/timeline" {
				shown += b.text()
			}
		}
	}
	for _, name := range names {
		if begin := name[:min(len(name), 20)]; !strings.ContainsFunc(begin,
			func(r rune) bool { return r < ' ' || r > '~' }) && !strings.Contains(shown, begin) {
			t.Errorf("no view shows the name %q", begin)
		}
	}
	b.quiet()
}
