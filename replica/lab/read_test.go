package lab

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/collect/ticket"
	"ovs-offline/test/check/expect"
)

// TestRefusedCommandsAreNamed checks that nothing runs which could leave the replica, read a file or end a daemon, and
// that each is named with its line.
func TestRefusedCommandsAreNamed(t *testing.T) {
	for command, reason := range map[string]string{
		// Files.
		"ovs-ofctl add-flows br0 /etc/passwd":                            "/etc/passwd is a file",
		"ovs-ofctl add-flows br0 flows.txt":                              "flows.txt is a file",
		"ovs-ofctl add-flows br0 -":                                      "not in the text",
		"ovs-ofctl replace-flows br0 /dev/stdin":                         "is a file",
		"ovs-ofctl add-flow br0 actions=drop > /etc/cron.d/x":            "redirection > /etc/cron.d/x",
		"ovs-ofctl add-flows br0 - < /etc/shadow":                        "redirection < /etc/shadow",
		"ovs-ofctl diff-flows br0 /etc/passwd":                           "diff-flows",
		"ovs-vsctl --log-file=/etc/x add-br br0":                         "--log-file",
		"ovs-vsctl -vfile:dbg add-br br0":                                "-vfile:dbg",
		"ovs-vsctl -vPATTERN:file:%m --log-file=x add-br br0":            "-vPATTERN",
		"ovs-vsctl --private-key=/root/.ssh/id add-br br0":               "--private-key",
		"ovs-vsctl set-ssl /a /b /c":                                     "set-ssl",
		"ovs-vsctl -- --id=@s create SSL private_key=/a":                 "the table SSL",
		"ovn-nbctl set-ssl /a /b /c":                                     "set-ssl",
		"ovn-nbctl create SSL private_key=/a":                            "the table SSL",
		"ovs-ofctl --unixctl=/tmp/x add-flow br0 actions=drop":           "--unixctl",
		"ovs-ofctl -F table_id add-flow br0 actions=drop":                "-F",
		"ovn-nbctl --detach":                                             "--detach",
		"ovn-nbctl --pidfile=/run/x ls-add s":                            "--pidfile",
		"ovn-nbctl -u /tmp/x ls-add s":                                   "-u",
		"ovs-vsctl --bootstrap-ca-cert=/etc/x add-br br0":                "--bootstrap-ca-cert",
		"ovs-vsctl set Open_vSwitch . ovs_version=1":                     "ovs_version",
		"ovs-ofctl add-tlv-map br0 \"{class=1,type=1,len=4}->tun\" /etc": "operands",
		// Addresses and sockets.
		"ovs-vsctl --db=tcp:10.0.0.1:6640 add-br br0":                                  "--db",
		"ovs-vsctl --db tcp:10.0.0.1:6640 add-br br0":                                  "--db",
		"ovn-nbctl --db=ssl:10.0.0.1:6641 ls-add s":                                    "--db",
		"OVN_NB_DB=tcp:10.0.0.1:6641 ovn-nbctl ls-add s":                               "OVN_NB_DB",
		"ovs-ofctl add-flow tcp:10.0.0.1:6653 actions=drop":                            "no bridge",
		"ovs-ofctl add-flow unix:/var/run/openvswitch/db.sock actions=drop":            "no bridge",
		"ovs-ofctl add-flow ../br0 actions=drop":                                       "no bridge",
		"ovs-vsctl set-manager ptcp:6640":                                              "set-manager",
		"ovs-vsctl set-controller br0 unix:/var/run/docker.sock":                       "begins with tcp: or ssl:, and not",
		"ovs-vsctl add-br br0 -- set-controller br0 punix:/tmp/x":                      "begins with tcp: or ssl:, and not",
		"ovs-vsctl -- --id=@c create Controller target=\"tcp:1\"":                      "the table Controller",
		"ovs-vsctl set Bridge br0 controller=@c":                                       "controller",
		"ovs-vsctl -- --id=@s create sflow targets=\"1.1.1.1\" -- set br br0 sflow=@s": "the table sflow",
		"ovs-vsctl set Bridge br0 sflow=@s":                                            "sflow",
		"ovn-nbctl set-connection ptcp:6641":                                           "set-connection",
		"ovn-nbctl create Connection target=\"ptcp:6641\"":                             "the table Connection",
		"ovn-nbctl set NB_Global . connections=@c":                                     "connections",
		"ovn-sbctl set-connection ptcp:6642":                                           "set-connection",
		"ovn-sbctl set Chassis x name=y":                                               "set",
		// The end of daemons, and what is no tool of a lab.
		"ovs-vsctl emer-reset":                                       "emer-reset",
		"ovs-appctl exit":                                            "a lab carries out",
		"ovs-appctl -t ovsdb-server exit":                            "a lab carries out",
		"ovs-appctl vlog/set dbg":                                    "a lab carries out",
		"ovs-appctl ofproto/inject x":                                "a lab carries out",
		"ovs-dpctl add-dp dp0":                                       "a lab carries out",
		"ovsdb-client transact '[]'":                                 "a lab carries out",
		"ovsdb-tool create /tmp/x":                                   "a lab carries out",
		"/usr/share/openvswitch/scripts/ovs-ctl start":               "a lab carries out",
		"ovs-vsctl add-br br0 -- show-secrets":                       "show-secrets",
		"ovs-vsctl add-br br0 -- list-br -- emer-reset":              "emer-reset",
		"ovs-vsctl --dry-run add-br br0":                             "--dry-run",
		"ovs-vsctl add-br br0 -- --db=tcp:1.1.1.1:1 add-port br0 p":  "--db",
		"ovs-vsctl add-port br0 p1 -- set Interface p1 statistics=1": "statistics",
		"ovs-vsctl add-port br0 p1 sflow=1":                          "sflow",
		"ovs-ofctl -O ../../x add-flow br0 actions=drop":             "no version of OpenFlow",
		"ovs-ofctl monitor-and-kill br0":                             "monitor-and-kill",
		"ovs-vsctl -- --id=@i create Interface type=dpdk name":       "the row has no name",
		"ovs-ofctl add-flow br0 actions=drop extra words":            "operands",
		"ovs-vsctl set i p1 type=internal":                           "the table i",
		// A shell.
		"ovs-vsctl add-br $(reboot)":                     "$(reboot)",
		"ovs-vsctl add-br `reboot`":                      "`reboot`",
		"ovs-vsctl add-br \"$(reboot)\"":                 "$(reboot)",
		"ovs-vsctl add-br $BR":                           "the variable $BR",
		"ovs-vsctl add-br br0 | sh":                      "a pipe",
		"curl x | ovs-ofctl add-flows br0 -":             "a pipe",
		"ovs-vsctl list-br | xargs ovs-vsctl del-br":     "a pipe",
		"for i in 1 2; do ovs-vsctl add-br br$i; done":   "the variable $i",
		"while :; do ovs-vsctl add-br br0; done":         "a loop",
		"ovs-vsctl br-exists x || ovs-vsctl add-br br0":  "the outcome of the command before",
		"bash -c 'ovs-vsctl add-br br0 > /etc/x'":        "redirection",
		"ovs-vsctl add-br " + strings.Repeat("b", 70000): "64 KiB",
	} {
		s := read(ticket.ReadTyped("\n" + command + "\n"))
		if len(s.steps) != 0 || len(s.built.Refused) != 1 {
			t.Errorf("%.100s: %d steps %v, refused %v, want it refused", command, len(s.steps), s.steps, s.built.Refused)
			continue
		}
		if refused := s.built.Refused[0]; refused.Line != 2 || !strings.Contains(refused.Reason, reason) ||
			len(refused.Command) > 300 {
			t.Errorf("%.100s: line %d, %q, want line 2 and a reason with %q", command, refused.Line, refused.Reason, reason)
		}
	}
}

// TestCommandsBecomeArgumentLists checks what runs of commands that are carried out, and what is written once
// ovs-vswitchd has ended.
func TestCommandsBecomeArgumentLists(t *testing.T) {
	for command, want := range map[string]string{
		"ovs-vsctl --no-wait -t 5 --may-exist add-br br0":                                                                              "[-- --may-exist add-br br0]",
		"ovs-vsctl add-br br0 -- set bridge br0 fail-mode=secure protocols=OpenFlow10,OpenFlow13":                                      "[-- add-br br0 -- set Bridge br0 fail_mode=secure protocols=OpenFlow10,OpenFlow13]",
		"ovs-vsctl add-port br0 p1 tag=10 -- set int p1 type=internal ofport-request=7":                                                "[-- add-port br0 p1 tag=10 -- set Interface p1 type=internal ofport_request=7]",
		"ovs-vsctl add-port br0 d0 -- set Interface d0 type=dpdk options:dpdk-devargs=0:1":                                             "[-- add-port br0 d0] later [--if-exists set Interface d0 type=dpdk] [--if-exists set Interface d0 options:dpdk-devargs=0:1]",
		"ovs-vsctl add-port br0 d0 -- set Interface d0 type=dummy options:pcap=/etc/x":                                                 "[-- add-port br0 d0] later [--if-exists set Interface d0 type=dummy] [--if-exists set Interface d0 options:pcap=/etc/x]",
		"ovs-vsctl add Interface d0 options stream=unix:/x":                                                                            "[] later [--if-exists add Interface d0 options stream=unix:/x]",
		"ovs-vsctl add-br br0 -- set bridge br0 datapath_type=netdev":                                                                  "[-- add-br br0] later [--if-exists set Bridge br0 datapath_type=netdev]",
		"ovs-vsctl --no-wait set Open_vSwitch . other_config:dpdk-init=true":                                                           "[] later [--if-exists set Open_vSwitch . other_config:dpdk-init=true]",
		"ovs-vsctl set o . other_config:vlan-limit=2 external-ids:system-id=hv1":                                                       "[-- set Open_vSwitch . other_config:vlan-limit=2 external_ids:system-id=hv1]",
		"ovs-vsctl add-port br0 v -- set interface v type=vxlan option:remote_ip=1.1.1.1 options:key=5":                                "[-- add-port br0 v -- set Interface v type=vxlan options:remote_ip=1.1.1.1 options:key=5]",
		"ovs-vsctl add-port br0 v -- set interface v type=patch 'options={peer=w}'":                                                    "[-- add-port br0 v -- set Interface v type=patch options={peer=w}]",
		"ovs-vsctl -- --id=@p get port p1 -- --id=@m create mirror name=m select_all=true output_port=@p -- set bridge br0 mirrors=@m": "[-- --id=@p get port p1 -- --id=@m create Mirror name=m select_all=true output_port=@p -- set Bridge br0 mirrors=@m]",
		"ovs-vsctl clear Bridge br0 mirrors":                                                                                           "[-- clear Bridge br0 mirrors]",
		"ovs-vsctl remove port p1 tag 10":                                                                                              "[-- remove Port p1 tag 10]",
		"ovs-vsctl set-controller br0 tcp:10.0.0.1:6653":                                                                               "[-- set-controller br0 tcp:10.0.0.1:6653]",
		"ovs-ofctl -OOpenFlow13 --strict del-flows br0 in_port=1":                                                                      "[-O OpenFlow13 --strict -- del-flows  in_port=1]",
		"ovs-ofctl add-flow br0 -O openflow14 actions=drop":                                                                            "[-O openflow14 -- add-flow  actions=drop]",
		"ovs-ofctl add-flow unix:/var/run/openvswitch/br0.mgmt actions=drop":                                                           "[-- add-flow  actions=drop]",
		"ovn-nbctl --wait=hv ls-add s -- lsp-add s p":                                                                                  "[-- ls-add s -- lsp-add s p]",
		"ovn-nbctl --wait=sb --log --severity=info acl-add s to-lport 1 ip4 drop":                                                      "[-- --log --severity=info acl-add s to-lport 1 ip4 drop]",
		"ovn-sbctl chassis-add ch1 geneve 1.1.1.1":                                                                                     "[-- chassis-add ch1 geneve 1.1.1.1]",
		// What only prints something is left out.
		"ovs-vsctl show": "", "ovs-vsctl --columns=name list Interface": "", "ovs-vsctl get Interface p1 ofport": "",
		"ovs-ofctl dump-flows br0": "", "ovs-ofctl show br0 > x": "",
		"ovs-appctl ofproto/trace br0 in_port=1": "", "ovn-trace s 'inport == \"p\"'": "",
		"ovn-nbctl --db=tcp:1.1.1.1:1 show": "", "ovs-vsctl --version": "", "ovs-appctl fdb/show br0": "",
	} {
		s := read(ticket.ReadTyped(command))
		got := ""
		for _, step := range s.steps {
			got += fmt.Sprint(step.args)
			if len(step.withheld) > 0 {
				got += " later " + strings.Trim(fmt.Sprint(step.withheld), "[]")
				got = strings.Replace(got, "later --", "later [--", 1) + "]"
			}
		}
		expect.Equal(t, got, want, command)
		if want == "" && len(s.built.Refused) > 0 {
			t.Errorf("%s: refused %v, want it left out", command, s.built.Refused)
		}
	}
}

// TestOneNodeAndManyCommands checks that commands of a second host are refused, and those beyond the limit.
func TestOneNodeAndManyCommands(t *testing.T) {
	s := read(ticket.ReadTyped("[root@n1 ~]# ovs-vsctl add-br a\n[root@n2 ~]# ovs-vsctl add-br b\n[root@n2 ~]# ovn-nbctl ls-add s\n[root@n1 ~]# ovs-vsctl add-br c\n"))
	if len(s.steps) != 3 || s.host != "n1" || len(s.built.Refused) != 1 || s.built.Refused[0].Line != 2 {
		t.Errorf("host %q, %d steps, refused %v, want those of n1, that of OVN, and line 2 refused", s.host, len(s.steps),
			s.built.Refused)
	}
	s = read(ticket.ReadTyped(strings.Repeat("ovs-vsctl add-br a\n", 20000)))
	if len(s.steps) != maxCommands || len(s.built.Refused) != 1 || s.built.Refused[0].Line != maxCommands+1 ||
		!strings.Contains(s.built.Refused[0].Reason, "10000 from") {
		t.Errorf("%d steps, refused %v, want %d and the number of the others", len(s.steps), s.built.Refused, maxCommands)
	}
}
