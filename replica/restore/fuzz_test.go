package restore

import (
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

// FuzzRecorded passes any text to the readers of recorded files.
func FuzzRecorded(f *testing.F) {
	for _, pattern := range []string{"*list_interface", "*list_bridge"} {
		captures.Captured(f, pattern, 2048, func(content []byte) { f.Add(string(content)) })
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, rapid := range []bool{false, true} {
			tree := tree{rapid: rapid, bridge: &Bridge{Ports: []*Port{{Name: "p1"}}}}
			tree.readLists(map[string]string{"p1": text}, listedMap(text))
			if len(tree.ports) > 1 {
				t.Errorf("one port has %d states", len(tree.ports))
			}
		}
	})
}

// FuzzHello passes any bytes to the reader of an OpenFlow HELLO.
func FuzzHello(f *testing.F) {
	f.Add("\x06\x00\x00\x10\x00\x00\x00\x01\x00\x01\x00\x08\x00\x00\x00\x7e")
	f.Add("\x04\x00\x00\x08\x00\x00\x00\x01")
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := readHello(strings.NewReader(text)); err == nil && v == 0 {
			t.Error("a HELLO without a version is accepted")
		}
	})
}
