package bisect_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/bisect"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/show"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

const lab = "../../scripts/lab/lab"

// deployment is the nodes of a set, whose NB database gets further transactions in its log.
type deployment struct {
	t      *testing.T
	folder string
	log    string // the path of the NB database of a node
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{t: t, folder: ovs.Dir(t)}
	nodes, err := sets.Recorded(t, lab, "openstack").Workdirs(t.Context(), d.folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	// One node has the NB database, as in a deployment whose databases are on a node of their own.
	for node, path := range nodes {
		wd, err := workdir.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		database := wd.Database(workdir.NB)
		wd.Unlock()
		if node == "compute1" {
			d.log = database
		} else if err := os.Remove(database); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// transact adds a transaction to the log, as a client that gives a comment does.
func (d *deployment) transact(comment, operations string) {
	d.t.Helper()
	text := fmt.Sprintf(`["OVN_Northbound",{"op":"comment","comment":%q},%s]`, comment, operations)
	out, err := exec.Command("ovsdb-tool", "transact", d.log, text).CombinedOutput()
	if err != nil || strings.Contains(string(out), "error") {
		d.t.Fatalf("%s: %v: %s", comment, err, out)
	}
}

// harmless adds transactions that change nothing for the packets between vm1 and vm2: to other networks and groups, and
// to rows that they share with others.
func (d *deployment) harmless(first, count int) {
	d.t.Helper()
	for i := first; i < first+count; i++ {
		port := fmt.Sprintf(`{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p","row":{"name":"harmless%d",
			"addresses":"0a:00:00:00:%02x:%02x 192.168.30.%d"}},{"op":"mutate","table":"Logical_Switch",
			"where":[["name","==","%s"]],"mutations":[["ports","insert",["named-uuid","p"]]]}`, i, i/256, i%256, 20+i%200, red)
		acl := fmt.Sprintf(`{"op":"insert","table":"ACL","uuid-name":"a","row":{"priority":1002,"direction":"to-lport",
			"match":"outport == @%s && ip4 && tcp.dst == %d","action":"allow-related"}},
			{"op":"mutate","table":"Port_Group","where":[["name","==","%s"]],
			"mutations":[["acls","insert",["named-uuid","a"]]]}`, others, 10000+i, others)
		addresses := fmt.Sprintf(`{"op":"insert","table":"Address_Set","row":{"name":"harmless%d","addresses":"10.9.%d.%d"}}`,
			i, i/256, i%256)
		mark := fmt.Sprintf(`{"op":"mutate","table":"Logical_Switch","where":[],"mutations":[["external_ids","delete",
			["set",["mark"]]],["external_ids","insert",["map",[["mark","%d"]]]]]}`, i)
		d.transact(fmt.Sprint("harmless ", i), []string{port, acl, addresses, mark}[i%4])
	}
}

// Rows of the set openstack, by their names.
const (
	red    = "neutron-74604810-cce4-4ae7-8c50-0956a746bd54" // a network
	blue   = "neutron-e3c647f7-8126-4a93-8c43-b76ffa808cd7" // the network of vm1 and vm2
	vm1    = "bd9e8124-4e85-4ce9-8853-39a7c44a644a"
	vm2    = "59b79644-9135-466c-8ae9-cedc223b2034"
	web    = "pg_8ac43e59_4bdc_4225_85ee_6161a9db9dc3" // the port group of vm1 and vm2
	others = "pg_0daadabe_77d2_42be_8221_3f08341f48d7"
	router = "neutron-b9a4ccc8-038a-408f-8e2f-20a351392e7a"
)

// port changes a column of a port.
func port(name, column, value string) string {
	return fmt.Sprintf(`{"op":"update","table":"Logical_Switch_Port","where":[["name","==","%s"]],"row":{"%s":%s}}`,
		name, column, value)
}

// uuidOf returns the UUID of the row of a table that a condition selects.
func (d *deployment) uuidOf(table, where string) string {
	d.t.Helper()
	query := fmt.Sprintf(`["OVN_Northbound",{"op":"select","table":"%s","where":[%s],"columns":["_uuid"]}]`, table, where)
	out, err := exec.Command("ovsdb-tool", "query", d.log, query).Output()
	found := regexp.MustCompile(`"uuid","([0-9a-f-]{36})"`).FindStringSubmatch(string(out))
	if err != nil || found == nil {
		d.t.Fatalf("%s: %v: %s", where, err, out)
	}
	return found[1]
}

// breaking is a transaction that makes a packet that arrives not arrive any more.
type breaking struct {
	name, to, protocol string
	operations         func(d *deployment) string
}

// forgetting makes ovn-northd delete what the router has learned, so that where the packet went before is no longer known.
const forgetting = "the router is switched off"

func breakings() []breaking {
	is := func(text string) func(*deployment) string { return func(*deployment) string { return text } }
	without := func(table, row, column, of, where string) func(d *deployment) string {
		return func(d *deployment) string {
			return fmt.Sprintf(`{"op":"mutate","table":"%s","where":[["name","==","%s"]],
				"mutations":[["%s","delete",["uuid","%s"]]]}`, table, row, column, d.uuidOf(of, where))
		}
	}
	named := func(name string) string { return `["name","==","` + name + `"]` }
	drop := func(table, row string) func(*deployment) string {
		return is(fmt.Sprintf(`{"op":"insert","table":"ACL","uuid-name":"a","row":{"priority":2000,"direction":"to-lport",
			"match":"ip4 && tcp.dst == 22","action":"drop"}},{"op":"mutate","table":"%s","where":[["name","==","%s"]],
			"mutations":[["acls","insert",["named-uuid","a"]]]}`, table, row))
	}
	return []breaking{
		{"vm2 is switched off", "vm2:22", "", is(port(vm2, "enabled", "false"))},
		{"vm1 is switched off", "vm2:22", "", is(port(vm1, "enabled", "false"))},
		{"the port security of vm1", "vm2:22", "", is(port(vm1, "port_security", `"fa:16:3e:10:00:05 192.168.10.99"`))},
		{"the addresses of vm2", "vm2:22", "", is(port(vm2, "port_security", `"fa:16:3e:10:00:77 192.168.10.6"`))},
		{"an ACL of the network", "vm2:22", "", drop("Logical_Switch", blue)},
		{"an ACL of the port group", "vm2:22", "", drop("Port_Group", web)},
		{"vm2 leaves the group", "vm2:22", "", without("Port_Group", web, "ports", "Logical_Switch_Port", named(vm2))},
		{"vm1 leaves the group", "vm2:22", "", without("Port_Group", web, "ports", "Logical_Switch_Port", named(vm1))},
		{"the ACL that allows it", "vm2:22", "", without("Port_Group", web, "acls", "ACL",
			`["match","==","outport == @`+web+` && ip4 && ip4.src == $`+web+`_ip4 && tcp && `+
				`tcp.dst == 22"]`)},
		{"vm2 is deleted", "vm2:22", "", without("Logical_Switch", blue, "ports", "Logical_Switch_Port", named(vm2))},
		{"the default route", "external/8.8.8.8", "icmp", without("Logical_Router", router, "static_routes",
			"Logical_Router_Static_Route", `["ip_prefix","==","0.0.0.0/0"]`)},
		{forgetting, "external/8.8.8.8", "icmp", is(fmt.Sprintf(
			`{"op":"update","table":"Logical_Router","where":[["name","==","%s"]],"row":{"enabled":false}}`, router))},
		{"a policy of the router", "external/8.8.8.8", "icmp", is(fmt.Sprintf(`{"op":"insert","table":"Logical_Router_Policy",
			"uuid-name":"p","row":{"priority":500,"match":"ip4.dst == 8.8.8.8","action":"drop"}},
			{"op":"mutate","table":"Logical_Router","where":[["name","==","%s"]],"mutations":[["policies","insert",["named-uuid","p"]]]}`, router))},
	}
}

// found returns the answer about a packet of vm1, of the nodes that it can meet.
func (d *deployment) found(to, protocol string) *bisect.Document {
	d.t.Helper()
	nodes := []string{"compute1", "compute2"}
	if strings.HasPrefix(to, "external/") {
		nodes = nil
	}
	all, err := snapshot.Open(d.folder, nodes)
	if err != nil {
		d.t.Fatal(err)
	}
	of, err := whatif.Of(d.t.Context(), all)
	if err != nil {
		d.t.Fatal(err)
	}
	document, err := bisect.Run(d.t.Context(), whatif.Question{Deployment: of, Runtime: runtime.Auto, Runtimes: local.Runtimes,
		Trace:   &trace.Between{From: "vm1", To: to, Question: names.Question{Protocol: protocol}},
		Replica: func(path string) whatif.Replica { return set.At(path, "test") }})
	if err != nil {
		d.t.Fatal(err)
	}
	return document
}

func printed(d *bisect.Document) string {
	var text strings.Builder
	d.Print(&show.Page{Out: &text, Err: &text, Call: show.Call(func(string, ...string) string { return "" })})
	return text.String()
}

// TestTheBreakingTransactionIsNamed hides a transaction that breaks a connection among harmless ones.
func TestTheBreakingTransactionIsNamed(t *testing.T) {
	sweep.Only(t, "TestEachChangeOfTheVerdictIsNamed")
	fidelity.NeedScratch(t)
	const most = 250
	for i, b := range breakings() {
		t.Run(b.name, func(t *testing.T) {
			d := newDeployment(t)
			first := most * (i + 1) / (len(breakings()) + 1)
			d.harmless(0, first)
			d.transact("it breaks", b.operations(d))
			d.harmless(first, most-first)
			found := d.found(b.to, b.protocol)
			before := "REACHABLE"
			if b.name == forgetting {
				before = "UNDETERMINED"
			}
			if len(found.Changes) != 1 || found.Changes[0].Event.Comment != "it breaks" ||
				found.Changes[0].Before.Verdict != before || found.Verdict == "REACHABLE" {
				t.Error(printed(found))
			}
		})
	}
}

// TestEachChangeOfTheVerdictIsNamed switches a port off and on, and breaks the connection in another way later.
func TestEachChangeOfTheVerdictIsNamed(t *testing.T) {
	fidelity.NeedScratch(t)
	d := newDeployment(t)
	d.transact("off", port(vm2, "enabled", "false"))
	d.harmless(0, 4)
	d.transact("on", port(vm2, "enabled", "true"))
	d.harmless(4, 20)
	d.transact("it breaks", port(vm1, "port_security", `"fa:16:3e:10:00:05 192.168.10.99"`))
	d.harmless(24, 4)
	found := d.found("vm2:22", "")
	var changes []string
	for _, c := range found.Changes {
		changes = append(changes, c.Event.Comment+" "+c.Before.Verdict+" "+c.After.Verdict)
	}
	want := []string{"it breaks REACHABLE UNREACHABLE", "on UNREACHABLE REACHABLE", "off REACHABLE UNREACHABLE"}
	if !slices.Equal(changes, want) {
		t.Errorf("%q, not %q:\n%s", changes, want, printed(found))
	}
	if text := printed(found); !strings.HasPrefix(text, "UNREACHABLE  vm1 -> vm2:22: since ") || found.States < 31 {
		t.Error(text)
	}
}

// TestWhatIsNotInTheLog compacts a database after the transaction that breaks the connection.
func TestWhatIsNotInTheLog(t *testing.T) {
	sweep.Only(t, "TestEachChangeOfTheVerdictIsNamed, but for a sentence,")
	fidelity.NeedScratch(t)
	d := newDeployment(t)
	d.transact("it breaks", port(vm2, "enabled", "false"))
	if out, err := exec.Command("ovsdb-tool", "compact", d.log).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := d.found("vm2:22", "")
	if text := printed(found); len(found.Changes) > 0 || found.States != 1 ||
		!strings.Contains(text, "since when is not in the log: the OVN NB database holds the state of ") {
		t.Error(text)
	}
}
