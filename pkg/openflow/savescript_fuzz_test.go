package openflow_test

import (
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
)

// FuzzReadSaveScript checks that no script results in file names with folders, or in
// more text than the script has.
func FuzzReadSaveScript(f *testing.F) {
	f.Add("ovs-ofctl add-tlv-map br-int '{class=0x102,type=0x80,len=4}->tun_metadata0,{class=0x102,type=0x81,len=4}->tun_metadata1'\n" +
		"ovs-ofctl -O OpenFlow14 add-groups br-int \\\n  \"/tmp/ovs-save/br-int.groups.dump\"\n" +
		"ovs-ofctl -O OpenFlow14 --bundle replace-flows br-int \\\n \"/tmp/br-int.flows.dump\"\n")
	f.Add("ovs-ofctl --bundle add-flows $(touch x) \"`id`\"\n")
	f.Add("ovs-ofctl add-tlv-map ../br \",{,{{,{\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		parts, _, err := openflow.ReadSaveScript(strings.NewReader(text))
		if err != nil && len(text) < 1<<20 {
			t.Fatal(err)
		}
		size := 0
		for _, p := range parts {
			if strings.ContainsAny(p.Bridge, " \t\n") {
				t.Errorf("bridge %q", p.Bridge)
			}
			if strings.Contains(p.File, "/") && p.File != "/" {
				t.Errorf("file %q", p.File)
			}
			for _, m := range p.Mappings {
				if m == "" || strings.Contains(m, ",{") {
					t.Errorf("mapping %q", m)
				}
				size += len(m)
			}
			size += len(p.Text)
		}
		if size > 2*len(text) {
			t.Errorf("%d bytes were made of %d", size, len(text))
		}
	})
}
