package ofmeter

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// What a real switch takes is tested where meters are restored.

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"meter=1 kbps bands=type=drop rate=2":                                      "\x00\x00\x00\x01\x00\x00\x00\x01" + "\x00\x01\x00\x10\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00",
		"meter=4294967295 pktps burst stats bands=type=drop rate=256 burst_size=3": "\x00\x00\x00\x0e\xff\xff\xff\xff" + "\x00\x01\x00\x10\x00\x00\x01\x00\x00\x00\x00\x03\x00\x00\x00\x00",
		"meter=1 kbps bands=type=drop rate=2 type=dscp_remark rate=3 prec_level=4": "\x00\x00\x00\x01\x00\x00\x00\x01" + "\x00\x01\x00\x10\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x00\x02\x00\x10\x00\x00\x00\x03\x00\x00\x00\x00\x04\x00\x00\x00",
	} {
		if m, ok := Parse(text); !ok || string(m[headerLen:]) != want {
			t.Errorf("%s: %v %x", text, ok, m)
		}
	}
	for _, text := range []string{
		"", "meter=1", "meter=1 kbps bands=", "meter=controller kbps bands=type=drop rate=1", "meter=1 bands=type=drop rate=1",
		"meter=4294967296 kbps bands=type=drop rate=1", "meter=1 kbps bands=type=drop rate=4294967296", "meter=1 kbps bands=type=drop",
		"meter=1 kbps bands=type=drop rate=1 prec_level=1", "meter=1 kbps bands=type=dscp_remark rate=1", "meter=1 kbps bands=type=dscp_remark rate=1 prec_level=256",
		"meter=1 kbps bands=type=some rate=1", "meter=1 kbps bands=type=drop rate=1 more", "meter=1 kbps bands=type=drop rate=1" + strings.Repeat(" type=drop rate=1", 5000),
	} {
		if m, ok := Parse(text); ok {
			t.Errorf("%.100s: %x", text, m)
		}
	}
}

// TestStrangeSwitches: one that is not there was told nothing; one that stops
// speaking, or speaks nonsense, is an error; and one that is silent can be left.
func TestStrangeSwitches(t *testing.T) {
	m, ok := Parse("meter=1 kbps bands=type=drop rate=1")
	if !ok {
		t.Fatal("no meter")
	}
	socket := filepath.Join(t.TempDir(), "br0.mgmt")
	if _, err := Add(t.Context(), socket, "OpenFlow13", []Message{m}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := Add(t.Context(), socket, "OpenFlow10", []Message{m}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("OpenFlow 1.0: %v", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for _, says := range []string{"", "\x04", "\x04\x00\x00\x03\x00\x00\x00\x00", "\x04\x00\x00\x20\x00\x00\x00\x00half", "silence"} {
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if says == "silence" {
				leave()
				<-t.Context().Done()
				return
			}
			if _, err := conn.Write([]byte(says)); err != nil {
				t.Error(err)
			}
		}()
		_, err := Add(ctx, socket, "OpenFlow13", repeated(m, 100_000))
		if err == nil || errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) != (says == "silence") {
			t.Errorf("%q: %v", says, err)
		}
		if says != "silence" {
			<-served
		}
	}
}

func repeated(m Message, count int) []Message {
	list := make([]Message, count)
	for i := range list {
		list[i] = m
	}
	return list
}

// FuzzRead gives any words of a switch, and of a dump, to what reads them.
func FuzzRead(f *testing.F) {
	f.Add("meter=1 kbps burst stats bands=type=drop rate=2 burst_size=3 type=dscp_remark rate=1 prec_level=1")
	f.Add("\x04\x01\x00\x0c\x00\x00\x00\x00\x00\x0c\x00\x01\x04\x15\x00\x08\x00\x00\x00\x01")
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := Parse(text); ok && (len(m) < headerLen+8+16 || len(m) > 1<<16-1 || len(m)%8 != 0) {
			t.Errorf("%d bytes", len(m))
		}
		if refused, err := read(bytes.NewReader([]byte(text)), 1); err == nil && len(refused) > 1 {
			t.Errorf("%v of one are refused", refused)
		}
	})
}
