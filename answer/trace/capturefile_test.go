package trace

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// TestInterfacesOfAFileAreBounded reads a pcapng file that describes a million interfaces.
func TestInterfacesOfAFileAreBounded(t *testing.T) {
	section := binary.LittleEndian.AppendUint32(nil, 0x0a0d0d0a)
	for _, word := range []uint32{28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28} {
		section = binary.LittleEndian.AppendUint32(section, word)
	}
	var described []byte
	for _, word := range []uint32{1, 20, 1, 0, 20} { // a block of 20 bytes: Ethernet, any length
		described = binary.LittleEndian.AppendUint32(described, word)
	}
	f, err := openCapture(bytes.NewReader(append(section, bytes.Repeat(described, 1_000_000)...)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.next(); err == nil || !strings.Contains(err.Error(), "more than 10000 interfaces") {
		t.Errorf("the error is %v", err)
	}
}
