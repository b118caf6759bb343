package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// network is a deployment that a test writes row by row.
type network struct {
	nb, sb         ovndb.Rows
	rows           int
	nbDate, sbDate int64 // of the last transactions, in seconds; 0 for none
	// switches and routers refer to their ports, and the rest of what they have, by column.
	owners map[string]ovndb.Row
}

func newNetwork() *network {
	n := &network{nb: ovndb.Rows{}, sb: ovndb.Rows{}, owners: map[string]ovndb.Row{}}
	n.addNB("NB_Global", ovndb.Row{})
	n.addSB("SB_Global", ovndb.Row{})
	return n
}

func (n *network) addNB(table string, row ovndb.Row) []string { return n.add(n.nb, table, row) }
func (n *network) addSB(table string, row ovndb.Row) []string { return n.add(n.sb, table, row) }

// add adds a row, and returns the reference to it.
func (n *network) add(to ovndb.Rows, table string, row ovndb.Row) []string {
	n.rows++
	uuid := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n.rows)
	if to[table] == nil {
		to[table] = map[string]ovndb.Row{}
	}
	to[table][uuid] = row
	return ovndb.UUID(uuid)
}

// owner adds a switch or a router.
func (n *network) owner(table, name string, row ovndb.Row) {
	row["name"] = name
	n.addNB(table, row)
	n.owners[name] = row
}

// has gives a switch or a router one more reference in a column.
func (n *network) has(owner, column string, references ...[]string) {
	row := n.owners[owner]
	list, _ := row[column].([]any)
	var elements []any
	if list != nil {
		elements = list[1].([]any)
	}
	for _, r := range references {
		elements = append(elements, r)
	}
	row[column] = ovndb.Set(elements...)
}

// port adds a port to a switch: addresses are elements of the column.
func (n *network) port(owner, name string, addresses []string, columns ovndb.Row) {
	row := ovndb.Row{"name": name, "addresses": setOf(addresses)}
	for column, value := range columns {
		row[column] = value
	}
	n.has(owner, "ports", n.addNB("Logical_Switch_Port", row))
}

// routerPort adds a port to a router, and the port of a switch that leads to it.
func (n *network) routerPort(router, name, mac, to string, networks ...string) {
	n.has(router, "ports", n.addNB("Logical_Router_Port",
		ovndb.Row{"name": name, "mac": mac, "networks": setOf(networks)}))
	if to != "" {
		n.port(to, to+"-"+name, []string{"router"}, ovndb.Row{"type": "router", "options": ovndb.Map("router-port", name)})
	}
}

func setOf(texts []string) []any {
	var elements []any
	for _, text := range texts {
		elements = append(elements, text)
	}
	return ovndb.Set(elements...)
}

// findings returns what a rule finds in the network, a line for each finding, in order.
func (n *network) findings(t *testing.T, r rule.Rule) []string {
	t.Helper()
	opened := &snapshot.Deployment{NB: index(t, ovs.NBSchema, n.nb, n.nbDate), SB: index(t, ovs.SBSchema, n.sb, n.sbDate)}
	lines := findingsIn(t, r, opened)
	known := &snapshot.Deployment{NB: declared(t, r, opened, n.nb, ovs.NBSchema),
		SB: declared(t, r, opened, n.sb, ovs.SBSchema)}
	partly := r.OnlySome(&rule.Deployment{Deployment: known}) != "" // it says which tables it has not looked at
	if alone := findingsIn(t, r, known); len(alone) > len(lines) || len(alone) < len(lines) && !partly {
		t.Errorf("%s finds\n%s\nand where only the tables and columns are known that it says it reads\n%s", r.Name,
			strings.Join(lines, "\n"), strings.Join(alone, "\n"))
	}
	return lines
}

// declared returns the database of some rows with the tables and columns that a rule says it reads. It leaves out a
// column if the rule lacks nothing without it.
func declared(t *testing.T, r rule.Rule, whole *snapshot.Deployment, rows ovndb.Rows, schema string) *file.Index {
	t.Helper()
	probe, kept, known := index(t, schema, rows, 0), ovndb.Rows{}, map[string]file.KnownTable{}
	isNeeded := func(table string, columns []string) bool {
		probe.OnlyParts(map[string]file.KnownTable{table: {All: true, Columns: columns}})
		d := &snapshot.Deployment{NB: whole.NB, SB: whole.SB}
		if schema == ovs.NBSchema {
			d.NB = whole.NB.WithParts(probe)
		} else {
			d.SB = whole.SB.WithParts(probe)
		}
		missing, err := r.Missing(&rule.Node{Deployment: &rule.Deployment{Deployment: d}})
		if err != nil {
			t.Fatal(err)
		}
		return len(missing) > 0
	}
	for table, all := range rows {
		columns := map[string]bool{}
		for _, row := range all {
			for column := range row {
				columns[column] = true
			}
		}
		needed := []string{"_uuid"} // none would mean all
		for column := range columns {
			others := slices.DeleteFunc(slices.Collect(maps.Keys(columns)), func(other string) bool { return other == column })
			if isNeeded(table, append(others, "_uuid")) {
				needed = append(needed, column)
			}
		}
		known[table], kept[table] = file.KnownTable{All: true, Columns: needed}, map[string]ovndb.Row{}
		for uuid, row := range all {
			kept[table][uuid] = ovndb.Row{}
			for _, column := range needed {
				if value, has := row[column]; has {
					kept[table][uuid][column] = value
				}
			}
		}
	}
	parts := index(t, schema, kept, 0)
	parts.OnlyParts(known)
	if schema == ovs.NBSchema {
		return whole.NB.WithParts(parts)
	}
	return whole.SB.WithParts(parts)
}

// findingsIn returns what a rule finds in a deployment, a line for each finding, in order.
func findingsIn(t *testing.T, r rule.Rule, opened *snapshot.Deployment) []string {
	t.Helper()
	c := rule.Of([]*snapshot.Deployment{opened}, rule.Programs{})
	var lines []string
	found := func(f rule.Finding) {
		f = r.Finish(f)
		if len(f.Next) == 0 || len(f.Evidence) == 0 || f.Follows == "" || len(f.Sources) == 0 {
			t.Errorf("%s: a finding without evidence, what follows, what is next, or a source: %+v", r.Name, f)
		}
		lines = append(lines, string(f.Severity)+": "+f.What)
	}
	var err error
	if r.Case != nil {
		err = r.Case(context.Background(), c, found)
	} else {
		err = r.Deployment(context.Background(), c.Deployments[0], found)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

func index(t *testing.T, schema string, rows ovndb.Rows, date int64) *file.Index {
	t.Helper()
	f := ovndb.Create(t, schema)
	f.Add(rows)
	if date != 0 {
		f.Add(map[string]any{"_date": date * 1000})
	}
	x, err := file.OpenIndex(t.Context(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// testCase is a network, and what a rule finds in it.
type testCase struct {
	rule  func() rule.Rule
	build func(n *network)
	want  []string
}

func test(t *testing.T, cases map[string]testCase) {
	t.Helper()
	for name, c := range cases {
		n := newNetwork()
		c.build(n)
		expect.Equal(t, n.findings(t, c.rule()), c.want, name)
	}
}

// TestRulesFindNothingInNothing lets all rules look at empty databases, and at none.
func TestRulesFindNothingInNothing(t *testing.T) {
	// The findings of these have consequences and sources of their own.
	composite := map[string]bool{"packages": true, "logs": true, "row-churn": true, "datapath-flows-stale": true,
		"megaflow-explosion": true, "not-offloaded": true,
		"conntrack-talker": true, "conntrack-near-limit": true, "conntrack-of-tunnels": true,
		"datapath-lost-packets": true, "datapath-many-masks": true, "megaflow-limit": true}
	names := map[string]bool{}
	for _, r := range All() {
		if names[r.Name] || r.Name != strings.ToLower(r.Name) || r.Severity == "" || !composite[r.Name] &&
			(r.Follows == "" || len(r.Sources) == 0) {
			t.Errorf("rule %+v lacks something, or its name is taken", r)
		}
		names[r.Name] = true
		if r.Node != nil {
			continue
		}
		expect.Equal(t, newNetwork().findings(t, r), nil, r.Name)
		c := rule.Of([]*snapshot.Deployment{{}}, rule.Programs{})
		found := func(f rule.Finding) { t.Errorf("%s found %s in no database", r.Name, f.What) }
		var err error
		if r.Case != nil {
			err = r.Case(t.Context(), c, found)
		} else if r.Deployment != nil {
			err = r.Deployment(t.Context(), c.Deployments[0], found)
		}
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}
