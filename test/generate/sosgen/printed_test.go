package sosgen

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// notPrinted are the columns of Logical_Flow that `ovn-sbctl lflow-list` does not print. Of
// external_ids it prints one key.
var notPrinted = []string{"Logical_Flow._uuid", "Logical_Flow.external_ids", "Logical_Flow.tags",
	"Logical_Flow.controller_meter",
	"Logical_Flow.logical_dp_group", "Logical_Flow.logical_datapath"}

// TestPrintedDatabasesServeTheLiveRows checks that a report without files of the OVN databases, but
// with what sos prints of them, serves the rows of the live databases.
func TestPrintedDatabasesServeTheLiveRows(t *testing.T) {
	n := recorded(t, "openstack")
	report := n.Report(newest())
	without := report.Without("var/lib/ovn/", "var/lib/ovn-ic/")
	printed := n.PrintedCentral(t)
	trees := map[string]Tree{
		"with lflow-list":    without.With(printed),
		"and ends of files":  without.With(printed).With(n.endsOfDatabases()),
		"without lflow-list": without.With(printed.Without("sos_commands/ovn_central/ovn-sbctl_--no-leader-only_lflow-list")),
	}
	// Of the printed tables beside the ends of files, what is printed is read, as without these.
	whole := func(what string) string { return what }
	for _, what := range sweep.Named(t, slices.Sorted(maps.Keys(trees)), whole, "and ends of files",
		"without lflow-list") {
		tree := trees[what]
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := replay(t, writeTop(t, "sosreport-"+n.Host, tree))
			expect.Equal(t, r.collected.code, 0, "exit code of collect: "+r.collected.err)
			for _, db := range []struct {
				name string
				kind workdir.Kind
			}{{NB, workdir.NB}, {SB, workdir.SB}} {
				live, err := n.Rows(db.name)
				if err != nil {
					t.Fatal(err)
				}
				out := append(ephemeral(t, n, db.name), notPrinted...)
				want, have := rowsOf(t, live, out...), rowsOf(t, dumpOf(t, "unix:"+r.serving(db.kind), db.name), out...)
				missing, extra := lines.Difference(distinct(want), distinct(have))
				if len(want) == 0 || len(missing)+len(extra) > 0 {
					t.Errorf("%s: of %d live rows, %d are missing and %d are extra:\n%.900q\n%.900q", db.name, len(want), len(missing),
						len(extra), missing, extra)
				}
			}
			if !strings.Contains(r.words(), "made from its printed tables") {
				t.Errorf("no message says that the databases were made: %s", r.words())
			}
			o := run(t, "drift", "-w", r.Workdir.Path())
			if o.code != 0 || !strings.Contains(o.out, "no drift") {
				t.Errorf("drift of a node without any exits with %d: %s%s", o.code, o.out, o.err)
			}
		})
	}
}

// distinct leaves out groups of datapaths and repeated rows: lflow-list prints a flow of a group once
// for each datapath, and ovn-northd chooses other groups.
func distinct(rows []string) []string {
	rows = slices.DeleteFunc(slices.Clone(rows),
		func(row string) bool { return strings.HasPrefix(row, "Logical_DP_Group ") })
	return slices.Compact(rows)
}

// TestLogicalFlowsGetTheirCookies checks that the logical flows of lflow-list, which prints no UUIDs,
// begin like those of the live database wherever the node has flows of them.
func TestLogicalFlowsGetTheirCookies(t *testing.T) {
	n := recorded(t, "openstack")
	tree := n.Report(newest()).Without("var/lib/ovn/", "var/lib/ovn-ic/").With(n.PrintedCentral(t))
	r := replay(t, writeTop(t, "sosreport-"+n.Host, tree))
	live, err := n.Rows(SB)
	if err != nil {
		t.Fatal(err)
	}
	want, have := cookiesOf(t, live), cookiesOf(t, dumpOf(t, "unix:"+r.serving(workdir.SB), SB))
	right, wrong, unknown := 0, 0, 0
	recorded := string(readFile(t, r.Workdir.DumpFile("br-int", workdir.Flows)))
	for flow, cookies := range want {
		for cookie := range cookies {
			switch {
			case have[flow][cookie]:
				right++
			case !regexp.MustCompile(`cookie=0x` + strings.TrimLeft(cookie, "0") + `,`).MatchString(recorded):
				unknown++ // the node has no flow of it
			default:
				wrong++
			}
		}
	}
	t.Logf("%d logical flows begin like the live ones, %d do not, and of %d the node has no flow", right, wrong, unknown)
	if wrong*50 > right {
		t.Errorf("%d of %d logical flows with flows on the node have another cookie: it has to be at most 2 %%", wrong,
			right+wrong)
	}
}

// cookiesOf returns the first eight digits of the UUIDs of logical flows, by their stage and content.
func cookiesOf(t *testing.T, dump []byte) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	for _, row := range rowsOf(t, dump, "Logical_Flow.external_ids", "Logical_Flow.tags", "Logical_Flow.controller_meter",
		"Logical_Flow.logical_dp_group", "Logical_Flow.flow_desc") {
		match := regexp.MustCompile(`^(Logical_Flow) _uuid=\["uuid","([0-9a-f]{8})[^ ]* (.*)$`).FindStringSubmatch(row)
		if match == nil {
			continue
		}
		if found[match[3]] == nil {
			found[match[3]] = map[string]bool{}
		}
		found[match[3]][match[2]] = true
	}
	if len(found) == 0 {
		t.Fatal("the database has no logical flows")
	}
	return found
}

// TestPrintedTablesOfOneCommandAreNoDatabase checks that a report with one table says that it is not
// enough, and that an error message in place of a table is a loss.
func TestPrintedTablesOfOneCommandAreNoDatabase(t *testing.T) {
	n := recorded(t, "openstack")
	printed := n.PrintedCentral(t)
	const lists = "sos_commands/ovn_central/ovn-nbctl_--no-leader-only_list_"
	report := n.Report(newest()).Without("var/lib/ovn/", "var/lib/ovn-ic/")
	o := run(t, "inspect", writeTop(t, "sosreport-"+n.Host, report.With(Tree{lists + "ACL": printed[lists+"ACL"]})))
	if !strings.Contains(o.out+o.err, "no database can be made without the rows of Logical_Switch or Logical_Router") {
		t.Errorf("one table: %s%s", o.out, o.err)
	}
	failed := printed.With(Tree{lists + "ACL": {Body: []byte("ovn-nbctl: unix:/run/ovn/ovnnb_db.sock: database connection failed (Connection refused)\n")}})
	o = run(t, "collect", "-w", shortDir(t), writeTop(t, "sosreport-"+n.Host, report.With(failed)))
	if o.code != 3 || !strings.Contains(o.err, lists+"ACL: an error message") {
		t.Errorf("an error message in place of a table: exit %d, %s", o.code, o.err)
	}
}

// TestEndsOfDatabasesGiveWhatTheyHold checks that a report with the last part of the OVN databases alone,
// as sos keeps it, serves rows of the live databases and no other ones but the global one, and that
// every answer is in doubt. References to rows that are missing are removed.
func TestEndsOfDatabasesGiveWhatTheyHold(t *testing.T) {
	n := recorded(t, "openstack")
	ends := n.endsOfDatabases()
	report := n.Report(newest()).Without("var/lib/ovn/", "var/lib/ovn-ic/")
	beside := report.Under("sosreport-" + n.Host)
	for name, file := range ends {
		if file.Link == "" {
			beside[path.Base(name)] = file
		}
	}
	for what, source := range map[string]string{
		"in a report":           writeTop(t, "sosreport-"+n.Host, report.With(ends)),
		"in files of their own": write(t, beside),
	} {
		t.Run(what, func(t *testing.T) { checkEnds(t, n, replay(t, source)) })
	}
}

func checkEnds(t *testing.T, n *Node, r *replica) {
	t.Helper()
	expect.Equal(t, r.collected.code, 3, "exit code of collect: "+r.collected.err)
	for _, db := range []struct {
		name string
		kind workdir.Kind
	}{{NB, workdir.NB}, {SB, workdir.SB}} {
		live, err := n.Rows(db.name)
		if err != nil {
			t.Fatal(err)
		}
		want, have := uuidsOf(rowsOf(t, live)), uuidsOf(rowsOf(t, dumpOf(t, "unix:"+r.serving(db.kind), db.name)))
		_, extra := lines.Difference(want, have)
		extra = slices.DeleteFunc(extra, func(row string) bool { return strings.HasPrefix(row, globalTable(db.name)+" ") })
		t.Logf("%s: %d of %d rows", db.name, len(have), len(want))
		if len(have) == 0 || len(extra) > 0 {
			t.Errorf("%s: of %d rows, %d are not live ones: %.900q", db.name, len(have), len(extra), extra)
		}
	}
	if !strings.Contains(r.words(), "the beginning of the database is missing") {
		t.Errorf("no message says what is missing: %s", r.words())
	}
	if o := run(t, "drift", "-w", r.Workdir.Path()); o.code != 3 {
		t.Errorf("drift with a part of the database exits with %d: %s%s", o.code, o.out, o.err)
	}
}

// endsOfDatabases returns the last two thirds of the OVN databases, as sos keeps the end of large files.
func (n *Node) endsOfDatabases() Tree {
	tree := Tree{}
	for name, file := range map[string]string{NB: "ovnnb_db.db", SB: "ovnsb_db.db"} {
		whole := n.Databases[name]
		tree["sos_strings/ovn_central/var.lib.ovn."+file+".tailed"] = File{Body: Tail(whole, len(whole)*2/3)}
		tree["var/lib/ovn/"+file] = File{Link: "../../../sos_strings/ovn_central/var.lib.ovn." + file + ".tailed"}
	}
	return tree
}

// uuidsOf returns the table and the UUID of each row.
func uuidsOf(rows []string) (ids []string) {
	for _, row := range rows {
		ids = append(ids, regexp.MustCompile(`^(\w+) .*?_uuid=(\[[^]]*\]).*$`).ReplaceAllString(row, "$1 $2"))
	}
	slices.Sort(ids)
	return ids
}
