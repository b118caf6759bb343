package collect

import (
	"strings"
	"testing"

	"ovs-offline/workdir/recording"
)

// FuzzIdentify identifies a file by any name and beginning: a command that is found is a recorded one.
func FuzzIdentify(f *testing.F) {
	for _, seed := range [][2]string{{"conf.db", "OVSDB JSON 1 a\n"}, {"node1_ovs_ofctl_dump_flows_br_int", "OFPST_FLOW reply (OF1.5) (xid=0x2):\n"},
		{"must-gather/version", "openshift/must-gather\n4.14\n"}, {"a.md", "```\n$ ovs-vsctl show\n```\n"},
		{"status", "a1b2\nName: OVN_Southbound\nCluster ID: a1b2 (01234567-0123-0123-0123-012345678901)\n"},
		{"scc_n_260507_0644/network.txt", "#==[ Command ]==#\n# /sbin/ip addr\n"}, {"x", "\xff\xfeo\x00v\x00s\x00"},
		{"ovnkube-node-x/logs.txt", "2026-05-07T06:44:05.386Z|00001|bridge|INFO|x\n"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, start string) {
		id := identify(name, []byte(start))
		if _, known := recording.Find(id.command); id.command != "" && !known {
			t.Errorf("%q is command %q", name, id.command)
		}
	})
}

// FuzzHostTexts makes the texts about a machine of any file: each line begins with the file's place, so that no
// text of a file is taken for another's.
func FuzzHostTexts(f *testing.F) {
	f.Add("notBefore=May  7 06:44:05 2026 GMT\nnotAfter=May  7 06:44:05 2036 GMT\n")
	f.Add("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
	f.Add("[compute]\ncpu_dedicated_set = 1-3\n[DEFAULT]\nvcpu_pin_set=1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for line := range strings.Lines(certificates("/etc/a.pem", []byte(text)) + cpuSets("/etc/a.pem", text)) {
			if !strings.HasPrefix(line, "/etc/a.pem\t") || strings.ContainsAny(line, "\r\x1b") {
				t.Errorf("%q makes %q", text, line)
			}
		}
	})
}

// FuzzMustGather reads any text as the time and as a resource of a must-gather: a time stands in the text.
func FuzzMustGather(f *testing.F) {
	f.Add("2026-05-07 06:44:05.386123 +0000 UTC m=+0.1\n2026-05-07 06:45:05 +0000 UTC\n")
	f.Add("kind: Pod\nmetadata: {name: ovnkube-node-x}\nspec:\n  nodeName: n1\n  containers: [{name: ovn-controller, image: i}]\n")
	f.Add("kind: Node\nmetadata:\n  name: n1\n  annotations: {k8s.ovn.org/node-chassis-id: c}\n")
	f.Add("a: &a [*a, *a]\nkind: Pod\n")
	f.Fuzz(func(t *testing.T, text string) {
		if at := lastTime(text).At; !at.IsZero() && !strings.Contains(text, at.Format("2006-01-02 ")) {
			t.Errorf("%q is of %v", text, at)
		}
		l := &looseReader{nodeOfPod: map[string]string{}, imageOfNode: map[string]string{}, nodeOfSystem: map[string]string{}}
		l.addObject([]byte(text))
		for system, name := range l.nodeOfSystem {
			if system == "" {
				t.Errorf("%q: the node %q has no system-id", text, name)
			}
		}
	})
}
