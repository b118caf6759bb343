package restore

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Switch is the replica's OVS: its bridges, the working copy of its database,
// and its ovs-vswitchd, once that runs.
type Switch struct {
	Bridges []*Bridge

	db           *ovsdb.Client
	runtime      runtime.Runtime
	dir          string // OVS_RUNDIR of its daemons
	isolated     bool   // its daemons can reach no network
	loopback     bool   // its daemons have a loopback interface of their own
	clockStopped bool
	expected     map[string]bool // log lines of ovs-vswitchd that any replica causes
}

// interfaces yields all interfaces, with their bridges.
func (s *Switch) interfaces() iter.Seq2[*Bridge, *Interface] {
	return func(yield func(*Bridge, *Interface) bool) {
		for _, bridge := range s.Bridges {
			for _, iface := range bridge.Interfaces() {
				if !yield(bridge, iface) {
					return
				}
			}
		}
	}
}

// managementSocket returns the path of the socket for OpenFlow connections.
func (s *Switch) managementSocket(bridge *Bridge) string {
	return filepath.Join(s.dir, bridge.Name+".mgmt")
}

// management returns the target by which ovs-ofctl reaches a bridge. It is a path,
// because ovs-ofctl could mistake a bridge's name for a remote ("tcp:...") or an
// option.
func (s *Switch) management(bridge *Bridge) string { return "unix:" + s.managementSocket(bridge) }

// ofctl runs a command of ovs-ofctl on a bridge.
func (s *Switch) ofctl(ctx context.Context, bridge *Bridge, version openflow.Version, command string, args ...string) (string, error) {
	return s.ofctlWith(ctx, nil, bridge, version, command, args...)
}

// ofctlWith runs a command of ovs-ofctl with options. Without --no-names ovs-ofctl
// would first ask for the names of all ports and tables.
func (s *Switch) ofctlWith(ctx context.Context, options []string, bridge *Bridge, version openflow.Version, command string, args ...string) (string, error) {
	argv := append([]string{"ovs-ofctl", "--no-names", "-O", version.String()}, options...)
	argv = append(append(argv, "--", command, s.management(bridge)), args...)
	out, err := s.runtime.Tool(ctx, s.dir, nil, argv...)
	return string(out), err
}

// appctl runs a command of ovs-vswitchd.
func (s *Switch) appctl(ctx context.Context, args ...string) (string, error) {
	out, err := daemon.Ask(ctx, s.runtime, s.dir, "ovs-vswitchd", args...)
	return string(out), err
}

// newest returns the newest OpenFlow version that a bridge accepts.
func (s *Switch) newest(ctx context.Context, bridge *Bridge) (openflow.Version, error) {
	if bridge.speaks != 0 {
		return bridge.speaks, nil
	}
	var err error
	if bridge.speaks, err = helloVersion(ctx, s.managementSocket(bridge)); err == nil {
		return bridge.speaks, nil
	}
	// The socket may be out of reach, for example in the virtual machine of a container engine.
	for _, version := range openflow.Versions() {
		if !bridge.allowsVersion(version) {
			continue
		}
		if _, err = s.ofctl(ctx, bridge, version, "show"); err == nil {
			bridge.speaks = version
			return version, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return 0, fmt.Errorf("bridge %s accepts no OpenFlow version: %w", bridge.Name, err)
}

// show asks a bridge for its ports.
func (s *Switch) show(ctx context.Context, bridge *Bridge) (openflow.Description, error) {
	version, err := s.newest(ctx, bridge)
	if err != nil {
		return openflow.Description{}, err
	}
	out, err := s.ofctl(ctx, bridge, version, "show")
	return openflow.Show(strings.NewReader(out)), err
}

// modPort sets a flag of a port with a word of ovs-ofctl mod-port, by the port's
// number, because ovs-ofctl does not accept LOCAL here. Only OpenFlow 1.0 has bits for
// flooding and spanning trees; later versions drop them silently.
func (s *Switch) modPort(ctx context.Context, bridge *Bridge, number int, word string) error {
	version := openflow.OpenFlow10
	if !bridge.allowsVersion(version) {
		var err error
		if version, err = s.newest(ctx, bridge); err != nil {
			return err
		}
	}
	_, err := s.ofctl(ctx, bridge, version, "mod-port", strconv.Itoa(number), word)
	return err
}

// setLink sets the link of a dummy device "up" or "down". It returns an error for other
// interfaces (patch ports, tunnels).
func (s *Switch) setLink(ctx context.Context, name, state string) error {
	_, err := s.appctl(ctx, "netdev-dummy/set-admin-state", name, state)
	return err
}

// receive makes a dummy device receive a frame.
func (s *Switch) receive(ctx context.Context, name string, frame []byte) error {
	_, err := s.appctl(ctx, "netdev-dummy/receive", name, hex.EncodeToString(frame))
	return err
}

// forgetPackets removes the datapath flows of the packets that a step let the
// replica receive: the live node did not have them.
func (s *Switch) forgetPackets(ctx context.Context, outcome *report.Outcome) error {
	if _, err := s.appctl(ctx, "revalidator/purge"); err != nil {
		outcome.Note(report.Approximated, "dpctl/dump-flows shows packets that this step sent: %v", err)
	}
	return ctx.Err()
}

// stopClock stops the clock of ovs-vswitchd, once: a second time/stop would first set
// it to the present time.
func (s *Switch) stopClock(ctx context.Context) error {
	if s.clockStopped {
		return nil
	}
	_, err := s.appctl(ctx, "time/stop")
	s.clockStopped = err == nil
	return err
}

// expect records a line that ovs-vswitchd logs only because it is part of a replica.
func (s *Switch) expect(line string) { s.expected[line] = true }

// Expected reports whether a step expected a line ("module: message") of
// ovs-vswitchd's log: such a line does not concern fidelity.
func (s *Switch) Expected(line string) bool { return s.expected[line] }

// reconfigure makes changes and waits until ovs-vswitchd has applied them, which
// it reports in cur_cfg (ovs-vswitchd.conf.db(5)).
func (s *Switch) reconfigure(ctx context.Context, changes []ovsdb.Change) error {
	const timeout = 60000 // ms; a loaded machine needs seconds for hundreds of ports
	rows, err := s.db.Select(ctx, "Open_vSwitch", "next_cfg")
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("the database has %d rows of Open_vSwitch", len(rows))
	}
	next, _ := rows[0].Int("next_cfg")
	changes = append(changes, ovsdb.Update("Open_vSwitch", rows[0].UUID, ovsdb.Columns{"next_cfg": next + 1}))
	if err := s.db.Transact(ctx, changes...); err != nil {
		return err
	}
	if err := s.db.Transact(ctx, ovsdb.Await("Open_vSwitch", rows[0].UUID, "cur_cfg", next+1, timeout)); err != nil {
		return fmt.Errorf("waiting for ovs-vswitchd to apply a change: %w", err)
	}
	return nil
}

// isCreated reports whether ovs-vswitchd created a bridge. It creates no bridge with a
// slash in its name, with which the path could lead to another switch's socket.
func (s *Switch) isCreated(bridge *Bridge) bool {
	if strings.Contains(bridge.Name, "/") {
		return false
	}
	_, err := os.Stat(s.managementSocket(bridge))
	return err == nil
}

// retryUntil calls done until it returns true or an error, for a second, and on a busy machine
// until ovs-vswitchd has answered 50 questions: it applies commands in a thread of its own and
// does not report when. The end of that time is not an error; the caller judges by the last
// result.
func retryUntil(ctx context.Context, done func() (bool, error)) error {
	const bound, pause, answers = time.Second, 2 * time.Millisecond, 50
	deadline := time.Now().Add(bound)
	for n := 1; ; n++ {
		ok, err := done()
		if ok || err != nil || n >= answers && time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
