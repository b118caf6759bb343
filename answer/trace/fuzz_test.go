package trace

import (
	"bytes"
	"encoding/hex"
	"testing"

	"ovs-offline/answer/trace/frame"
)

// FuzzCapture reads any file as a capture, and each packet of it: none has more bytes than the file, or than it had on the wire.
func FuzzCapture(f *testing.F) {
	const packet = "ffffffffffff0050560000010800" + "4500001c0001000040110000" + "0a0000010a000002" + "0001000200080000"
	for _, text := range []string{
		"d4c3b2a1020004000000000000000000ffff000001000000" + "00000000000000002a0000002a000000" + packet,
		"a1b2c3d40002000400000000000000000000ffff00000001" + "0000000000000000000000100000ffff" + packet,
		"4d3cb2a1020004000000000000000000ffff000001000000" + "0000000000000000ffffffffffffffff" + packet,
		"0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000" + "01000000140000000100000000000000" + "14000000" +
			"060000004c000000000000000000000000000000" + "2a0000002a000000" + packet + "0000" + "4c000000",
		"0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000" + "0100000014000000010000000000000014000000" + "0300000010000000ffffffff10000000",
		"0a0d0d0affffffff1a2b3c4d",
	} {
		raw, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		opened, err := openCapture(bytes.NewReader(file))
		if err != nil {
			return
		}
		for {
			raw, size, err := opened.next()
			if err != nil {
				return
			}
			if len(raw) > len(file) || size < len(raw) {
				t.Fatalf("a packet has %d bytes of %d, and the file %d", len(raw), size, len(file))
			}
			_, _ = frame.Parse(raw)
		}
	})
}
