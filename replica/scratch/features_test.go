package scratch

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/runtime"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// TestFlowsHaveMetersThatTheControllerLearnsOfLate delays what the servers of the databases answer to ovn-controller,
// as a busy machine does: it installs flows before it has learned that its switch supports meters. With a Wait that
// took the first numbers for enough, half of the runs failed.
func TestFlowsHaveMetersThatTheControllerLearnsOfLate(t *testing.T) {
	fidelity.NeedScratch(t)
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	o := options(t)
	o.SB, o.Nodes = wd.Database(workdir.SB), []Recorded{nodeOf(wd, "compute1")}
	node := newNodeDaemons(o.Dir, 0, o.Nodes[0])
	o.Runtime = startingRuntime{o.Runtime, func(d runtime.Daemon) error {
		if d.Program == "ovn-controller" {
			delayAnswers(t, socket(node.recordedServer()), 300*time.Millisecond)
			delayAnswers(t, readerSocket(o.Dir), 200*time.Millisecond)
		}
		return nil
	}}
	got, err := start(t, o).Dump(t.Context(), "compute1", openflow.OpenFlow15)
	if err != nil || !strings.Contains(got.Flows, "meter_id=1") {
		t.Errorf("no flow has a meter: %v", err)
	}
}

// delayAnswers takes the place of a socket, and passes on what arrives from the server late.
func delayAnswers(t *testing.T, path string, delay time.Duration) {
	t.Helper()
	server := path + ".server"
	if err := os.Rename(path, server); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(t.Context(), func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := new(net.Dialer).DialContext(t.Context(), "unix", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go forward(upstream, client, 0)
			go forward(client, upstream, delay)
		}
	}()
}

// forward sends what it reads from one connection to the other after a delay, and closes that at the end.
func forward(to, from net.Conn, delay time.Duration) {
	type part struct {
		at   time.Time
		data []byte
	}
	parts := make(chan part, 1<<16)
	go func() {
		defer close(parts)
		for {
			buffer := make([]byte, 1<<16)
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			parts <- part{time.Now().Add(delay), buffer[:n]}
		}
	}()
	for p := range parts {
		time.Sleep(time.Until(p.at))
		_, _ = to.Write(p.data)
	}
	_ = to.Close()
}
