package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
)

// framesOf returns frames one after the other, each a kind and its content.
func framesOf(f *testing.F, parts ...any) []byte {
	f.Helper()
	var all bytes.Buffer
	for i := 0; i < len(parts); i += 2 {
		if err := writeFrame(&all, parts[i].(frame), []byte(parts[i+1].(string))); err != nil {
			f.Fatal(err)
		}
	}
	return all.Bytes()
}

// FuzzOutcome reads what a pod sends while a command runs in it: nothing is passed on but
// what it sent, and an exit code comes from a reply only.
func FuzzOutcome(f *testing.F) {
	f.Add(framesOf(f, frameOut, "text\n", frameErr, "warning\n", frameReply, `{"exit": 3}`))
	f.Add(framesOf(f, frameReply, `{"error": "pipe2: too many open files"}`))
	f.Add(framesOf(f, frameRequest, `{}`))
	f.Add(framesOf(f, frameReply, `{"exit": "x"}`))
	f.Add([]byte{byte(frameOut), 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, sent []byte) {
		var out, errs bytes.Buffer
		exit, err := outcome(bytes.NewReader(sent), runtime.Command{Stdout: &out, Stderr: &errs})
		if out.Len()+errs.Len() > len(sent) {
			t.Errorf("%d and %d bytes of %d", out.Len(), errs.Len(), len(sent))
		}
		if err == nil && !bytes.Contains(sent, []byte{byte(frameReply)}) || err != nil && exit != 0 {
			t.Errorf("exit %d, %v", exit, err)
		}
	})
}

// FuzzSession gives the near end what a pod sends instead of the messages of the far end:
// each request ends.
func FuzzSession(f *testing.F) {
	f.Add([]byte("Usage: something else\n"))
	header := func(kind byte, flags uint16, stream, length uint32) []byte {
		raw := binary.BigEndian.AppendUint16([]byte{0, kind}, flags)
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(raw, stream), length)
	}
	reply := framesOf(f, frameReply, `{"sockets": [{"folder": "ovs", "name": "db.sock"}]}`)
	f.Add(append(append(header(1, 2, 1, 0), header(0, 0, 1, uint32(len(reply)))...), reply...)) // ACK, and a reply
	f.Add(append(header(1, 1, 2, 0), header(0, 4, 2, 0)...))                                    // a stream of its own
	f.Add(header(3, 0, 0, 1))                                                                   // it goes away
	f.Fuzz(func(t *testing.T, sent []byte) {
		t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
		links := New(func(context.Context, *workdir.Dir) (Host, error) { return printing{string(sent)}, nil })
		defer links.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p, err := links.to(ctx, printing{string(sent)})
		if err != nil {
			return
		}
		if _, err := p.list(ctx, "n"); err == nil && !strings.Contains(string(sent), "{") {
			t.Error("an answer that was not sent")
		}
		if ctx.Err() != nil {
			t.Error("the request did not end by itself")
		}
	})
}

// FuzzRequest gives the far end a request: it connects to no socket but those of a replica.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"list": "n"}`, `{"list": "../n"}`, `{"dial": {"workdir": "n", "folder": "ovs", "name": "db.sock"}}`,
		`{"dial": {"workdir": "n", "folder": "ovs", "program": "ovs-vswitchd"}}`, `{"dial": {"workdir": "..", "folder": "ovs", "name": "db.sock"}}`,
		`{"run": {"number": 1, "args": ["status"]}}`, `{"run": {"number": 1, "input": true}}`, `{"in": 1}`, `{}`, `[]`, ``,
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	folder := filepath.Join(dir, "set", "n", varRunName, "ovs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		f.Fatal(err)
	}
	answering(f, filepath.Join(dir, "out.sock"), "outside")
	answering(f, filepath.Join(dir, "set", "out.sock"), "outside")
	answering(f, filepath.Join(folder, "db.sock"), "replica")
	f.Fuzz(func(t *testing.T, sent []byte) {
		root, err := os.OpenRoot(filepath.Join(dir, "set"))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		server := &Server{Run: func(context.Context, []string, *os.File, *os.File, *os.File) int { return 0 }}
		e := &end{server: server, root: root, inputs: map[runNumber]chan net.Conn{}}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // as of the session
		defer cancel()
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			e.answer(ctx, far)
		}()
		go func() { _ = writeFrame(near, frameRequest, sent) }()
		_ = near.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, _ := io.ReadAll(near)
		near.Close()
		if bytes.Contains(answer, []byte("outside")) {
			t.Errorf("%q leads to another socket: %q", sent, answer)
		}
	})
}
