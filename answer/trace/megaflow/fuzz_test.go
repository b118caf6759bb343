package megaflow

import (
	"strings"
	"testing"
)

// FuzzParseMasks reads the masks of any megaflow: they are of fields that packets differ in, in the order of their names.
func FuzzParseMasks(f *testing.F) {
	f.Add("recirc_id=0,eth,ip,in_port=1,dl_src=00:00:00:00:00:01,nw_src=10.0.0.0/8,nw_frag=no")
	f.Add("ct_state=+new-est+trk,ct_mark=0x1/0xff,ipv6,ipv6_src=::/0,tp_src=1/0xfff0")
	f.Fuzz(func(t *testing.T, text string) {
		fields, ok := parseMasks(text)
		for i, field := range fields {
			if !ok || !isMasked(field.name) || i > 0 && strings.Compare(fields[i-1].name, field.name) > 0 {
				t.Errorf("%q has %v", text, fields)
			}
		}
	})
}
