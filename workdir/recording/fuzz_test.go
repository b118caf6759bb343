package recording_test

import (
	"strings"
	"testing"

	"ovs-offline/workdir/recording"
)

// FuzzCommands reads any text as a command line and as the name of a file: what is found is a recorded command.
func FuzzCommands(f *testing.F) {
	for _, text := range []string{"sudo ovs-ofctl -O OpenFlow15 dump-flows br-int", "ip netns exec qrouter-1 ip -6 rule list",
		"ovn-nbctl --columns=name,_uuid find Logical_Switch name=a", "ovs-appctl -t /run/ovn/ovnnb_db.ctl cluster/status OVN_Northbound",
		"ip_netns_exec_a_ip_rule.3", "ovs-appctl-dpctl-show-s.out", "a_ovs-vsctl_-t_5_list_interface.txt",
		"ovs-appctl_-t_.var.run.ovn.ovn-controller._.ctl_ct-zone-list", "conntrack -L -f ipv4 -p tcp"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, parse := range map[string]func(string) (recording.Invocation, bool){
			"line": recording.ParseLine, "file": recording.ParseFileName,
			"typed": func(text string) (recording.Invocation, bool) { return recording.ParseTyped(strings.Fields(text)) },
		} {
			found, ok := parse(text)
			if _, known := recording.Find(found.Command.Name); ok != known {
				t.Errorf("%s: %q is command %q", name, text, found.Command.Name)
			}
		}
	})
}
