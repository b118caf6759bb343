package link

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"ovs-offline/replica/runtime"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// sending is a host whose program is an SSH server, and sends what a test wants.
type sending struct {
	printing
	answer          func(asked ssh.NewChannel)
	ignoresRequests bool // as if it had stopped
}

func (s sending) Stream(context.Context, ...string) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	config, err := farConfig()
	if err != nil {
		return nil, err
	}
	go func() {
		defer far.Close()
		_, channels, requests, err := ssh.NewServerConn(far, config)
		if err != nil {
			return
		}
		if !s.ignoresRequests {
			go ssh.DiscardRequests(requests)
		}
		for asked := range channels {
			go s.answer(asked)
		}
	}()
	return near, nil
}

// FuzzOutcome reads what a pod sends while a command runs in it: nothing is passed on but
// what it sent, and an exit code comes from the request that has it.
func FuzzOutcome(f *testing.F) {
	f.Add([]byte("text\n"), []byte("warning\n"), requestExit, ssh.Marshal(exitPayload{3}))
	f.Add([]byte(""), []byte(""), requestSignal,
		ssh.Marshal(signalPayload{Signal: failed, Message: "pipe2: too many open files"}))
	f.Add([]byte(""), []byte(""), requestSignal, ssh.Marshal(signalPayload{Signal: "TERM"}))
	f.Add([]byte(""), []byte(""), requestExit, []byte{0, 0, 0})
	f.Add([]byte(""), []byte(""), "exit-signal", []byte("x"))
	f.Add([]byte(""), []byte(""), requestKeepalive, []byte{})
	f.Fuzz(func(t *testing.T, out, errs []byte, request string, payload []byte) {
		links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) {
			return sending{answer: func(asked ssh.NewChannel) {
				channel, requests, err := asked.Accept()
				if err != nil {
					return
				}
				defer channel.Close()
				for q := range requests {
					_ = q.Reply(true, nil)
					if q.Type == requestExec {
						break
					}
				}
				go ssh.DiscardRequests(requests)
				_, _ = channel.Write(out)
				_, _ = channel.Stderr().Write(errs)
				_, _ = channel.SendRequest(request, false, payload)
			}}, nil
		})
		defer links.Close()
		var gotOut, gotErrs bytes.Buffer
		exit, err := links.Run(t.Context(), &workdir.Dir{}, []string{"status"},
			runtime.Command{Stdout: &gotOut, Stderr: &gotErrs})
		if !bytes.Equal(gotOut.Bytes(), out) || !bytes.Equal(gotErrs.Bytes(), errs) {
			t.Errorf("%q and %q are passed on, want %q and %q", gotOut.Bytes(), gotErrs.Bytes(), out, errs)
		}
		if err == nil && request != requestExit && request != requestSignal || err != nil && exit != 0 {
			t.Errorf("exit %d, %v after a request %q", exit, err, request)
		}
	})
}

// FuzzStream gives the near end what a pod sends instead of the messages of the far end: each
// command ends.
func FuzzStream(f *testing.F) {
	f.Add([]byte("Usage: something else\n"))
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add([]byte("SSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14aaaaaaaaaa"))
	f.Add([]byte("SSH-2.0-x\r\n\xff\xff\xff\xff\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		links := New(func(context.Context, *workdir.Dir, Attempt) (Host, error) { return printing{string(sent)}, nil })
		defer links.Close()
		ctx := ovs.Context(t)
		if exit, err := links.Run(ctx, &workdir.Dir{}, []string{"status"}, runtime.Command{}); err == nil || exit != 0 {
			t.Errorf("exit %d, %v: an answer that was not sent", exit, err)
		}
		if ctx.Err() != nil {
			t.Error("the command did not end by itself")
		}
	})
}

// FuzzFarEnd gives the far end a channel with a request: it connects to no socket but those of a
// replica.
func FuzzFarEnd(f *testing.F) {
	dir := f.TempDir()
	folder := filepath.Join(dir, "set", "n", varRunName, "ovs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		f.Fatal(err)
	}
	answering(f, filepath.Join(dir, "out.sock"), "outside")
	answering(f, filepath.Join(dir, "set", "out.sock"), "outside")
	answering(f, filepath.Join(folder, "db.sock"), "replica")
	for _, path := range []string{"n/var-run/ovs/db.sock", "n/var-run/ovs/ovs-vswitchd.pid", "../out.sock",
		"n/var-run/ovs/../../../out.sock"} {
		f.Add(channelSocket, ssh.Marshal(socketPayload{Path: path}), "", []byte{})
	}
	f.Add(channelList, []byte("n"), "", []byte{})
	f.Add(channelList, []byte("../n"), "", []byte{})
	f.Add(channelSession, []byte{}, requestExec, ssh.Marshal(commandPayload{"status"}))
	f.Add(channelSession, []byte{}, requestTerminal, ssh.Marshal(terminalPayload{Term: terminalName}))
	f.Add(channelSession, []byte{}, requestSize, ssh.Marshal(sizePayload{Columns: 80, Rows: 24}))
	f.Add("x11", []byte{}, "", []byte{})
	f.Fuzz(func(t *testing.T, kind string, about []byte, request string, payload []byte) {
		near, far := net.Pipe()
		defer near.Close()
		server := &Server{Root: filepath.Join(dir, "set"),
			Run: func(context.Context, []string, *os.File, *os.File, *os.File) int { return 0 }}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_, _ = server.Serve(t.Context(), far)
		}()
		conn, channels, requests, err := ssh.NewClientConn(near, "", nearConfig())
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(conn, channels, requests)
		if c, requests, err := client.OpenChannel(kind, about); err == nil {
			go ssh.DiscardRequests(requests)
			isSession := kind == channelSession
			runs, _ := c.SendRequest(request, isSession, payload)
			_ = c.CloseWrite()
			if !isSession || runs && request == requestExec { // a session stays open after a refused request
				answer, _ := io.ReadAll(c)
				if bytes.Contains(answer, []byte("outside")) {
					t.Errorf("%q %q leads to another socket: %q", kind, about, answer)
				}
			}
			c.Close()
		}
		client.Close()
		ovs.Receive(t, "the far end to end", served)
	})
}
