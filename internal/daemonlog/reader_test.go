package daemonlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
)

// TestRealDaemons reads what real daemons wrote: each line is one of vlog, of a time in which they ran,
// and with the number that follows that of the line before it.
func TestRealDaemons(t *testing.T) {
	began := time.Now().Add(-time.Second)
	s := ovs.Start(t)
	s.Run("ovs-vsctl", "add-br", "br0", "--", "add-port", "br0", "p0", "--", "set", "interface", "p0", "type=nosuch")
	s.Stop()
	for _, program := range []string{"ovs-vswitchd", "ovsdb-server"} {
		path := files.Only(t, filepath.Join(s.Dir, "*"+program+"*.log"))
		warned, modules := false, map[string]bool{}
		result, err := Read(t.Context(), path, program, Options{}, func(line *Line) error {
			if line.Level == Unknown || line.Module == nil || line.At.Before(began) || line.At.After(time.Now()) {
				t.Errorf("%+v", line)
			}
			modules[string(line.Module)] = true
			warned = warned || line.Level == Warn && bytes.Contains(line.Text, []byte("nosuch"))
			return nil
		})
		if err != nil || result.Continued != 0 || result.Lines < 3 || !modules["vlog"] {
			t.Errorf("%s: %+v, %v, %v", program, result, modules, err)
		}
		expect.Equal(t, strings.Count(files.Read(t, path), "\n"), result.Lines)
		if program == "ovs-vswitchd" && !warned {
			t.Errorf("no warning about the type of p0:\n%s", files.Read(t, path))
		}
	}
}

// TestRealSyslog reads what a real program sends to a syslog server, in the lines that such a server writes.
func TestRealSyslog(t *testing.T) {
	ovs.Need(t, "ovs-vsctl")
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	send := exec.Command("ovs-vsctl", "--syslog-method=udp:127.0.0.1:"+port, "-vsyslog:info", "--db=unix:/nonexistent",
		"--timeout=1", "show")
	if err := send.Run(); err == nil {
		t.Fatal("it found a database")
	}
	var levels []Level
	for range 3 {
		raw := make([]byte, 1<<16)
		n, _, err := server.ReadFrom(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, sent, _ := strings.Cut(string(raw[:n]), ">")   // the facility and severity
		for _, tag := range []string{"ovs-vsctl: ", ""} { // by syslog(3), and by --syslog-method=unix:
			lines, result := readAll(t, "Apr  6 06:36:09 compute-1 "+tag+sent+"\n",
				Options{Location: time.UTC, Reference: time.Now()})
			if result.Continued > 0 || lines[0].Host != "compute-1" || lines[0].Level == Unknown || lines[0].Module == "" ||
				!strings.Contains(lines[0].Text, "unix:/nonexistent") {
				t.Errorf("%q: %+v", sent, lines)
			}
			if tag != "" {
				expect.Equal(t, lines[0].Program, "ovs-vsctl")
				levels = append(levels, lines[0].Level)
			}
		}
	}
	expect.Equal(t, levels, []Level{Info, Info, Error})
}

// TestCapturedLogs reads the logs in a real sos report: of Open vSwitch, and of a Neutron agent, whose
// tracebacks continue lines.
func TestCapturedLogs(t *testing.T) {
	for pattern, unknown := range map[string]int{"ovs-vswitchd.log": 0, "ovsdb-server.log": 0,
		"neutron-openvswitch-agent.log": 0} {
		captures.Captured(t, pattern, 1<<20, func(content []byte) {
			lines, result := readAll(t, string(content), Options{Location: time.UTC})
			bad := 0
			for _, line := range lines {
				if line.Level == Unknown || line.Module == "" || line.At == "" {
					bad++
				}
			}
			if bad != unknown || len(lines) < 3 {
				t.Errorf("%s: %d of %d lines have no level, module or time: %+v", pattern, bad, len(lines), result)
			}
		})
	}
}

// TestCompressed reads one log as logrotate's compressors write it.
func TestCompressed(t *testing.T) {
	text := strings.Repeat("2022-03-25T00:00:12.913Z|00001|a|INFO|b\n", 10_000)
	for _, program := range []string{"gzip", "xz", "zstd", "bzip2"} {
		t.Run(program, func(t *testing.T) {
			ovs.Need(t, program)
			plain := filepath.Join(t.TempDir(), "ovn-controller.log.1")
			files.Write(t, plain, text)
			compress := exec.Command(program, "-q", "-c", plain)
			packed, err := compress.Output()
			if err != nil {
				t.Fatal(err)
			}
			files.Write(t, plain, string(packed))
			n := 0
			result, err := Read(t.Context(), plain, "ovn-controller", Options{}, func(line *Line) error {
				if line.Level == Info && string(line.Text) == "b" {
					n++
				}
				return nil
			})
			if err != nil || n != 10_000 || result.Lost != "" {
				t.Errorf("%d lines, %+v, %v", n, result, err)
			}
			files.Write(t, plain, string(packed[:len(packed)*2/3]))
			result, err = Read(t.Context(), plain, "ovn-controller", Options{}, func(*Line) error { return nil })
			if err != nil || result.Lost == "" {
				t.Errorf("a file that is cut off: %+v, %v", result, err)
			}
		})
	}
}

// TestHostileLogs reads texts that no daemon writes: each costs the memory of a line, and the lines
// beside it are read.
func TestHostileLogs(t *testing.T) {
	const good = "2022-03-25T00:00:12.913Z|00001|a|INFO|b\n"
	for name, c := range map[string]struct {
		text string
		want Result
	}{
		"a line of 17 MiB":      {good + good[:38] + strings.Repeat("c", 17<<20) + "\n" + good, Result{Lines: 3, Cut: 1}},
		"17 MiB without an end": {good + strings.Repeat("c", 17<<20), Result{Lines: 2, Cut: 1, Continued: 1}},
		"bytes 0":               {good + strings.Repeat("\x00", 1<<20) + good + good, Result{Lines: 3, Cut: 1, Continued: 1}},
		"no text":               {good + "\xff\xfe\x00|\x80\n" + good, Result{Lines: 3, Continued: 1}},
		"times in times":        {strings.Repeat("2026-01-01T00:00:00Z stdout F ", 2000) + good, Result{Lines: 1}},
		"empty lines":           {good + "\n\n\r\n", Result{Lines: 4, Continued: 3}},
		"nothing":               {"", Result{}},
		"the magic of gzip":     {"\x1f\x8b", Result{Lost: "unexpected EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := readAll(t, c.text, Options{})
			got.First, got.Last = time.Time{}, time.Time{}
			expect.Equal(t, got, c.want)
		})
	}
}

// TestBombEnds reads a file that unpacks to a thousand times its size: its end is not read.
func TestBombEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	piece := []byte(strings.Repeat("2022-03-25T00:00:12.913Z|00001|a|INFO|b\n", 1<<15))
	for range 400 {
		if _, err := packed.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	result, err := Read(t.Context(), path, "a", Options{}, func(*Line) error { return nil })
	if err != nil || !strings.Contains(result.Lost, "exceeds a limit") || result.Lines == 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "a.log")
	files.Write(t, path, strings.Repeat("2022-03-25T00:00:12.913Z|00001|a|INFO|b\n", 1<<16))
	_, err := Read(ctx, path, "a", Options{}, func(*Line) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Read(t.Context(), filepath.Dir(path), "a", Options{}, nil); err == nil ||
		!strings.Contains(err.Error(), "a folder") {
		t.Error(err)
	}
}

func BenchmarkRead(b *testing.B) {
	var text bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&text, "2022-03-25T%02d:%02d:12.913Z|%05d|dpif_netlink(handler10)|WARN|system@ovs-system: lost packet on handler %d of the datapath\n", i/10_000, i/200%60, i, i)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(b.Context(), bytes.NewReader(text.Bytes()), "ovs-vswitchd", Options{})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				break
			}
		}
		if r.Result().Continued > 0 {
			b.Fatal(r.Result())
		}
	}
}
