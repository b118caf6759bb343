package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/collect"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/local"
	"ovs-offline/workdir"
)

// checkTicket returns what check says of a text that a person pasted, under the name of a file.
func checkTicket(t *testing.T, name, text string) *check.Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "case"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	if _, _, err := collect.Collect(t.Context(), wd, collect.Files{Paths: []string{file}}, collect.Options{}); err != nil {
		t.Fatalf("collecting the ticket: %v", err)
	}
	looked, err := check.Run(t.Context(), snapshot.Of(wd),
		check.Options{Programs: rule.Programs{Runtime: runtime.Auto, Runtimes: local.Runtimes}})
	if err != nil {
		t.Fatal(err)
	}
	return looked
}

// found returns the findings of a report, each as its severity, its sentence and its rule.
func found(r *check.Report) (list []string) {
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%s: %s [%s]", f.Severity, f.What, f.Rule))
	}
	slices.Sort(list)
	return list
}

const flowsOfBridge = `[root@n1 ~]# ovs-ofctl dump-flows br-int
NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=1.0s, table=0, n_packets=3, n_bytes=0, idle_age=1, priority=0 actions=NORMAL
`

// TestTicketOfASwitch checks what is found in `ovs-vsctl show` and in single tables of ovs-vsctl list.
func TestTicketOfASwitch(t *testing.T) {
	show := func(ports string) string {
		return "[root@n1 ~]# ovs-vsctl show\naaaaaaaa-1111-2222-3333-444444444444\n    Bridge br-int\n        fail_mode: secure\n" + ports +
			"        Port br-int\n            Interface br-int\n                type: internal\n    ovs_version: \"2.17.9\"\n"
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"an interface that is missing in the dead VLAN": {show("        Port qvo1\n            tag: 4095\n            Interface qvo1\n                error: \"could not open network device qvo1 (No such device)\"\n") + flowsOfBridge,
			[]string{"error: interface qvo1 could not be added: could not open network device qvo1 (No such device) [interface-without-port-number]", "warning: port qvo1 is in the dead VLAN (tag 4095) [port-in-dead-vlan]"}},
		"an error of another kind": {show("        Port dpdk0\n            Interface dpdk0\n                type: dpdk\n                error: \"Error attaching device '0000:05:00.0' to DPDK\"\n"),
			[]string{"error: interface dpdk0 could not be added: Error attaching device '0000:05:00.0' to DPDK [interface-without-port-number]"}},
		"healthy ports": {show("        Port tap1\n            tag: 4094\n            Interface tap1\n        Port tap2\n            Interface tap2\n") + flowsOfBridge, nil},
		"the table Interface alone": {"$ ovs-vsctl list Interface\n_uuid               : 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0001\nname                : tap9\nofport              : -1\nerror               : \"could not open network device tap9 (No such device)\"\n",
			[]string{"error: interface tap9 could not be added: could not open network device tap9 (No such device) [interface-without-port-number]"}},
		"a healthy interface in the table Interface": {"$ ovs-vsctl list Interface\n" + row(1, "name", "tap9", "ofport", "3", "error", "[]",
			"type", `""`), nil},
		"the table Interface without numbers": {"$ ovs-vsctl list Interface\n_uuid               : 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0001\nname                : tap9\ntype                : \"\"\n", nil},
		"the table Port alone": {"$ ovs-vsctl list Port\n_uuid               : 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0001\nname                : tap9\ntag                 : 4095\n\n_uuid               : 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0002\nname                : tap8\ntag                 : []\n",
			[]string{"warning: port tap9 is in the dead VLAN (tag 4095) [port-in-dead-vlan]"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := checkTicket(t, "ticket.md", c.text)
			expect.Equal(t, found(r), c.want)
			if len(r.Unjudged) != 1 || !strings.Contains(r.Unjudged[0], "database") { // exit code 3 if nothing is found
				t.Errorf("not judged: %q", r.Unjudged)
			}
		})
	}
}

// TestFlowsToMissingPorts checks that flows and groups are found that send packets to a port which ovs-ofctl show does
// not list.
func TestFlowsToMissingPorts(t *testing.T) {
	const (
		show   = "$ ovs-ofctl -O OpenFlow13 show br0\nOFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:0000aabbccddee01\n 1(p1): addr:02:00:00:00:00:01\n     config:     0\n     state:      LIVE\n LOCAL(br0): addr:aa:bb:cc:dd:ee:01\n"
		whole  = "OFPT_GET_CONFIG_REPLY (OF1.3) (xid=0x9): frags=normal miss_send_len=0\n"
		dump   = "$ ovs-ofctl -O OpenFlow13 dump-flows br0\nOFPST_FLOW reply (OF1.3) (xid=0x2):\n"
		groups = "$ ovs-ofctl -O OpenFlow13 dump-groups br0\nOFPST_GROUP_DESC reply (OF1.3) (xid=0x2):\n group_id=3,type=all,bucket=actions=output:1,bucket=actions=output:4\n"
	)
	flow := func(packets int, actions string) string {
		return fmt.Sprintf(" cookie=0x0, duration=1s, table=%d, n_packets=%[1]d, n_bytes=0, priority=1 actions=%s\n", packets,
			actions)
	}
	missing := func(port, by string) string {
		return fmt.Sprintf("warning: bridge br0 has no port %s: packets are sent there by %s [output-to-missing-port]", port,
			by)
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"by number": {show + whole + dump + flow(5, "output:775") + flow(2, "set_field:1->reg0,output:775"),
			[]string{missing("775", "2 flows (7 packets)")}},
		"by name": {show + whole + dump + flow(1, "output:tap1") + flow(2, "output:p1"),
			[]string{missing("tap1", "1 flow (1 packet)")}},
		"two ports": {show + whole + dump + flow(5, "output:8,output:9"),
			[]string{missing("8", "1 flow (5 packets)"), missing("9", "1 flow (5 packets)")}},
		"a group": {show + whole + groups + dump + flow(5, "group:3"), []string{missing("4", "group 3")}},
		"ports that exist": {show + whole + dump + flow(5,
			"output:1,LOCAL,IN_PORT,CONTROLLER:128,output:NXM_NX_REG15[],NORMAL") + flow(6, "output:p1"), nil},
		"a show that is cut":    {show + dump + flow(5, "output:775"), nil},
		"no show of the bridge": {dump + flow(5, "output:775"), nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Equal(t, found(checkTicket(t, "ticket.md", c.text)), c.want) })
	}
}

// TestAllClearNamesItsData checks that an all-clear says how many rules had data, and what the others lacked.
func TestAllClearNamesItsData(t *testing.T) {
	numbers := regexp.MustCompile(`^nothing found on 1 node by (\d+) of \d+ rules; \d+ had no data: (.*)$`)
	for name, c := range map[string]struct{ file, text, missing string }{
		"flows": {"a.md", flowsOfBridge, "no OVN NB database, no OVN SB database, no database of Open vSwitch"},
		"a log": {"a.log", "2026-05-07T06:44:05.386Z|00011|bridge|INFO|bridge br0: added interface eth0 on port 1\n",
			"no OVN NB database, no OVN SB database, no database of Open vSwitch, no dump of OpenFlow flows"},
		"old logs": {"a.txt", "Oct 30 20:50:21|00466|netdev|WARN|failed to get flags for network device qr-aee0b42e-33: No such device\n", "no OVN NB database, "},
	} {
		r := checkTicket(t, c.file, c.text)
		match := numbers.FindStringSubmatch(r.Summary())
		if match == nil || !strings.HasPrefix(match[2], c.missing) {
			t.Errorf("%s: %s", name, r.Summary())
		}
		if r.Judged < 2 || r.Judged > 6 || len(r.Unjudged) != 1 {
			t.Errorf("%s: judged by %d rules, not judged %q", name, r.Judged, r.Unjudged)
		}
	}
}

// bondShown is the head of a bond in what bond/show prints.
const bondShown = "$ ovs-appctl bond/show\n---- bond0 ----\nbond_mode: balance-slb\nbond may use recirculation: no, Recirc-ID : -1\nbond-hash-basis: 0\nupdelay: 0 ms\ndowndelay: 0 ms\n"

// TestBonds checks what is found in the outputs of bond/show and lacp/show.
func TestBonds(t *testing.T) {
	const (
		negotiated = "lacp_status: negotiated\nlacp_fallback_ab: false\nactive-backup primary: <none>\nactive member mac: 02:00:00:12:15:58(eno1)\n\n"
		up         = "member eno1: enabled\n  active member\n  may_enable: true\n\n"
		lacp       = "$ ovs-appctl lacp/show\n---- bond0 ----\n  status: active negotiated\n  sys_id: 02:00:00:12:15:58\n  sys_priority: 65534\n  aggregation key: 1\n  lacp_time: slow\n\n"
		partner    = "  port_id: 2\n  port_priority: 65535\n"
	)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a member without a partner": {bondShown + negotiated + up + "member eno2: disabled\n  may_enable: false\n\n" + lacp +
			"member: eno1: current attached\n" + partner + "  may_enable: true\n\nmember: eno2: defaulted detached\n" + partner +
			"  may_enable: false\n",
			[]string{"warning: 1 of 2 members of bond bond0 may not carry packets: eno2 [bond-member-down]",
				"warning: the partner of member eno2 of bond bond0 does not answer LACP (defaulted) [lacp-without-partner]"}},
		"Open vSwitch before 2.15 with both members down": {bondShown +
			"lacp_status: off\nactive slave mac: 00:00:00:00:00:00(none)\n\nslave p1: disabled\n\tmay_enable: false\n\nslave p2: disabled\n\tmay_enable: false\n\n",
			[]string{"error: no member of bond bond0 is enabled: p1, p2 [bond-member-down]"}},
		"no active member": {bondShown + "lacp_status: off\nactive member mac: 00:00:00:00:00:00(none)\n\nmember p1: enabled\n  may_enable: true\n\n",
			[]string{"error: bond bond0 has no active member [bond-member-down]"}},
		"a link that has just gone": {bondShown + negotiated + up +
			"member eno2: enabled\n  downdelay expires in 80 ms\n  may_enable: false\n\n",
			[]string{"warning: 1 of 2 members of bond bond0 may not carry packets: eno2 [bond-member-down]"}},
		"healthy": {bondShown + negotiated + up + "member eno2: enabled\n  may_enable: true\n  hash 7: 12 kB load\n\n" +
			lacp + "member: eno1: current attached\n" + partner + "\nmember: eno2: current attached\n" + partner, nil},
		"cut off": {bondShown + "lacp_status: off\n\nmember p1: enabled\n", nil},
		"no partner": {lacp + "member: eno1: defaulted detached\n" + partner + "\nmember: eno2: expired attached\n" +
			partner, []string{"error: the partner of member eno1 of bond bond0 does not answer LACP (defaulted) [lacp-without-partner]", "error: the partner of member eno2 of bond bond0 has stopped answering LACP (expired) [lacp-without-partner]"}},
		"two systems": {lacp + "slave: eno1: current attached\n" + partner + "\nslave: eno2: current detached\n" + partner,
			[]string{"warning: LACP does not let member eno2 into bond bond0 (detached): its partner is another system than that of the other members, or has another key [lacp-without-partner]"}},
		"falling back": {bondShown + "lacp_status: configured\nlacp_fallback_ab: true\nactive member mac: 02:00:00:12:15:58(eno1)\n\n" + up + lacp + "member: eno1: defaulted detached\n" + partner, []string{"warning: the partner of member eno1 of bond bond0 does not answer LACP (defaulted) [lacp-without-partner]"}},
	} {
		t.Run(name, func(t *testing.T) { expect.Equal(t, found(checkTicket(t, "ticket.md", c.text)), c.want) })
	}
}

// TestLogsInEachForm checks that a fault which a log shows is found in each form of the log: in a file of any name, in
// one that is named as logs are, and in a ticket, below prose and above the output of a command.
func TestLogsInEachForm(t *testing.T) {
	const vlog = "2022-05-24T20:51:11.001Z|00592|bridge|WARN|could not open network device eth9 (No such device)"
	for name, c := range map[string]struct {
		line  string
		dated bool
	}{
		"vlog":           {vlog, true},
		"console":        {strings.Replace(vlog, ".001Z", "Z", 1), true},
		"syslog":         {"May 24 20:51:11 n1 ovs-vswitchd: ovs|00592|bridge|WARN|could not open network device eth9 (No such device)", false},
		"syslog of 5424": {"<28>1 2022-05-24T20:51:11.5+02:00 n1 ovs-vswitchd 123 - - ovs|00592|bridge|WARN|could not open network device eth9 (No such device)", true},
		"rsyslog":        {"2022-05-24T20:51:11+02:00 n1 ovs-vswitchd[1]: ovs|00592|bridge|WARN|could not open network device eth9 (No such device)", true},
		"rsyslog in UTC": {"2022-05-24T20:51:11Z n1 ovs-vswitchd[1]: ovs|00592|bridge|WARN|could not open network device eth9 (No such device)", true},
		"journal":        {"May 24 20:51:11 n1 ovs-vswitchd[123]: ovs|00592|bridge|WARN|could not open network device eth9 (No such device)", false},
		"full journal":   {"Tue 2022-05-24 20:51:11 UTC n1 ovs-vswitchd[123]: ovs|00592|bridge|WARN|could not open network device eth9 (No such device)", true},
		"Open vSwitch 1": {"May 24 20:51:11|00592|bridge|WARN|could not open network device eth9 (No such device)", false},
		"CRI":            {"2022-05-24T20:51:11.123456789Z stderr F " + vlog, true},
		"Docker":         {`{"log":"` + vlog + `\n","stream":"stderr","time":"2022-05-24T20:51:11.123456789Z"}`, true},
		"klog":           {"I0524 20:51:11.123456    1234 ovs.go:12] " + vlog, true},
		"kubectl":        {"[pod/ovs-node-x/ovs-daemons] " + vlog, true},
	} {
		for file, text := range map[string]string{
			"notes.txt":        c.line + "\n",
			"ovs-vswitchd.log": c.line + "\n",
			"issue.md":         "Our bridge has lost a port. The log says:\n\n" + c.line + "\n\n" + flowsOfBridge,
		} {
			r := checkTicket(t, file, text)
			expect.Equal(t, found(r), []string{"error: ovs-vswitchd could not add port eth9: No such device [port-not-added]"},
				name+" in "+file)
			if len(r.Findings) == 1 && r.Findings[0].At.IsZero() == c.dated {
				t.Errorf("%s in %s: the finding is of %s", name, file, r.Findings[0].At)
			}
		}
	}
}
