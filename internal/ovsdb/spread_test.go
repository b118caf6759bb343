package ovsdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// uuids are n rows' keys whose first part is made by first.
func uuids(n int, first func(i int) uint32) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `"%08x-1234-4abc-8def-%012x" : {"name":"p-%d"},`, first(i), i, i)
	}
	return b.Bytes()
}

// TestSpread: rows that ovsdb-server can't find quickly are told from those that
// it can, however the text comes in pieces.
func TestSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		text  []byte
		alike bool
	}{
		"random":              {uuids(300000, func(int) uint32 { return random.Uint32() }), false},
		"in turn":             {uuids(300000, func(i int) uint32 { return uint32(i) }), false},
		"one part":            {uuids(3*many, func(int) uint32 { return 0x0190fe17 }), true},
		"its end only":        {uuids(3*many, func(i int) uint32 { return uint32(i)<<16 | 0xbeef }), true},
		"in capitals":         {bytes.ToUpper(uuids(3*many, func(i int) uint32 { return uint32(i)<<16 | 0xbeef })), true},
		"a thousand alike":    {uuids(many/2, func(int) uint32 { return 7 }), false},
		"one row, many times": {[]byte(strings.Repeat(`"01234567-89ab-4cde-8f01-23456789abcd":{},`, 5*many)), false},
		"no UUIDs":            {[]byte(strings.Repeat(`"-","--------","01234567-89ab-4cde-8f01-23456789abc-",`, 5*many)), false},
	} {
		for _, size := range []int{len(c.text), 4096, 37, 1} {
			if _, err := io.CopyBuffer(struct{ io.Writer }{newSpread()}, struct{ io.Reader }{bytes.NewReader(c.text)}, make([]byte, size)); errors.Is(err, ErrAlike) != c.alike {
				t.Errorf("%s, %d bytes at once: %v", name, size, err)
			}
		}
	}
}

// TestSpreadOfMended: UUIDs that sos took for MAC addresses become such that
// ovsdb-server finds their rows quickly.
func TestSpreadOfMended(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for range 3 * many {
		fmt.Fprintf(&b, `"%03x53:4f:53:%02x:%02x:%02x-%012x":{},`, random.Uint32()>>20, random.Uint32()>>24, random.Uint32()>>24, random.Uint32()>>24, random.Uint64()>>16)
	}
	text, n := mendUUIDs(b.Bytes())
	if n != 3*many {
		t.Fatalf("%d mended", n)
	}
	if _, err := newSpread().Write(text); err != nil {
		t.Error(err)
	}
}

func BenchmarkSpread(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	text := uuids(100000, func(int) uint32 { return random.Uint32() })
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.CopyBuffer(struct{ io.Writer }{newSpread()}, struct{ io.Reader }{bytes.NewReader(text)}, make([]byte, 32<<10)); err != nil {
			b.Fatal(err)
		}
	}
}
