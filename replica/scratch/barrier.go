package scratch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// ovn-controller writes the nb_cfg of the SB database to the integration bridge once the
// switch has acknowledged, with an OpenFlow barrier, all flows that it computed from that
// database (ovn-controller(8), external_ids:ovn-nb-cfg). So a number that was never used
// shows that the flows are installed.

// seenConfig is the key of the number.
const seenConfig = "ovn-nb-cfg"

// ErrNotReady is wrapped if the flows were not installed in time.
var ErrNotReady = errors.New("the flows were not installed in time")

// EndedError is the error about a daemon that has ended while it computed flows.
type EndedError struct{ Program, Problem string }

// Error names the daemon, and why it ended.
func (e *EndedError) Error() string { return e.Program + " has ended: " + e.Problem }

// Wait waits until ovn-northd, if there is one, and every ovn-controller have installed
// the content of the databases. Meanwhile it numbers the ports that an ovn-controller adds and,
// with AssumeSessions, sets the state of the BFD sessions that it adds, as ovs-vswitchd would.
//
// An ovn-controller gets a number and the change of another database over different
// connections, so it may report the number before it has seen the change. What it writes
// to that database with its report comes after the change, though: a second number is
// certain to include it. The same holds for ports that it claims, which northd answers.
// Without such changes, the first number is enough, once every ovn-controller knows what its switch
// supports (firstNumbers).
func (s *Scratch) Wait(ctx context.Context) error {
	limit := s.TimeLimit()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", ErrNotReady, limit))
	defer cancel()
	needed := 1 // rounds in a row without a change
	for quiet := 0; quiet < needed || s.numbers < firstNumbers; s.numbers++ {
		if err := s.awaitFlows(ctx); err != nil {
			return err
		}
		if s.numbers < firstNumbers {
			s.turnSwitches(ctx)
		}
		changed, err := s.follow(ctx)
		if err != nil {
			return err
		}
		quiet++
		if changed {
			quiet, needed = 0, 2
		}
	}
	return nil
}

// firstNumbers is how many numbers an ovn-controller has to report before it is certain to have used that its switch supports
// meters, without which it leaves them out of flows. Releases from 21.09 to 23.03.1 install flows before they know
// (lib/features.c of OVN), and compute all anew then. They ask over a connection of its own, which takes a step with each number:
// connect, ask, get the answer. Another passes if a transaction under way keeps ovn-controller from computing, and the last
// is reported after its flows are installed.
const firstNumbers = 5

// turnSwitches lets each ovs-vswitchd take what its connections hold, and answer: it answers one command in each turn of its main
// loop, accepts a connection in one turn, and reads from that in the next.
func (s *Scratch) turnSwitches(ctx context.Context) {
	for range 3 {
		for _, daemons := range s.nodes {
			d := daemons.vswitchd()
			_, _ = daemon.Ask(ctx, s.options.Runtime, d.RunDir, d.Program, "version") // awaitFlows finds one that has ended
		}
	}
}

// follow numbers the ports that ovn-controllers have added, gives BFD sessions a state, and
// reports whether any ovn-controller has changed what others depend on since the last call.
func (s *Scratch) follow(ctx context.Context) (changed bool, err error) {
	for _, daemons := range s.nodes {
		added, err := daemons.numberPorts(ctx)
		if err != nil {
			return false, err
		}
		assumed := 0
		if s.options.AssumeSessions {
			if assumed, err = s.assumeSessions(ctx, daemons); err != nil {
				return false, err
			}
		}
		changed = changed || added+assumed > 0
	}
	if !s.options.Northd {
		return changed, nil
	}
	bindings, err := readBindings(ctx, s.sb)
	if err != nil {
		return false, err
	}
	changed = changed || s.bindings == nil || !maps.Equal(bindings, s.bindings)
	s.bindings = bindings
	return changed, nil
}

// readBindings returns where each port is bound, and whether it is up, and which chassis a
// group of gateways has and which watch it. An ovn-controller has sent what it claims before it reports a number, but the server may answer a request
// before it executes what came earlier over another connection: the second answer has it.
func readBindings(ctx context.Context, sb *ovsdb.Client) (map[string]string, error) {
	if _, err := sb.Select(ctx, "SB_Global", "nb_cfg"); err != nil {
		return nil, err
	}
	rows, err := sb.Select(ctx, "Port_Binding", "chassis", "additional_chassis", "up")
	if err != nil {
		return nil, err
	}
	bindings := map[string]string{}
	for _, row := range rows {
		bindings[row.UUID] = fmt.Sprint(row.UUIDs("chassis"), row.UUIDs("additional_chassis"), row.Bools("up"))
	}
	groups, err := sb.Select(ctx, "HA_Chassis_Group", "ha_chassis", "ref_chassis")
	for _, row := range groups {
		bindings[row.UUID] = fmt.Sprint(row.UUIDs("ha_chassis"), row.UUIDs("ref_chassis"))
	}
	return bindings, err
}

// awaitFlows waits until each ovn-controller has installed the flows of a new nb_cfg.
func (s *Scratch) awaitFlows(ctx context.Context) error {
	for _, daemons := range s.nodes {
		s.config = max(s.config, daemons.seen)
	}
	s.config++
	if err := s.announce(ctx); err != nil {
		return err
	}
	group, limited := errgroup.WithContext(ctx)
	for _, daemons := range s.nodes {
		group.Go(func() error {
			if err := s.awaitNode(limited, daemons); err != nil {
				return fmt.Errorf("node %s: %w", daemons.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// announce writes the new number to the SB database, or lets ovn-northd do so together
// with what it makes of the NB database.
func (s *Scratch) announce(ctx context.Context) error {
	sb, err := singleRow(ctx, s.sb, "SB_Global")
	if err != nil {
		return err
	}
	if s.nb == nil {
		return s.sb.Transact(ctx, ovsdb.Update("SB_Global", sb.UUID, ovsdb.Columns{"nb_cfg": s.config}))
	}
	nb, err := singleRow(ctx, s.nb, "NB_Global")
	if err != nil {
		return err
	}
	// With --wait, ovn-nbctl has used a number in the transaction of its change, which saves
	// northd a run.
	if last, _ := nb.Int("nb_cfg"); last >= s.config {
		s.config = last
	} else if err := s.nb.Transact(ctx, ovsdb.Update("NB_Global", nb.UUID, ovsdb.Columns{"nb_cfg": s.config})); err != nil {
		return err
	}
	return await(ctx, s.options.central(), northd(s.options.Dir), func() (ovsdb.Row, bool, error) {
		row, err := singleRow(ctx, s.sb, "SB_Global")
		seen, _ := row.Int("nb_cfg")
		return row, seen >= s.config, err
	}, s.sb, "SB_Global", "nb_cfg")
}

// awaitNode waits until the ovn-controller of a node has reported the new number.
func (s *Scratch) awaitNode(ctx context.Context, daemons *nodeDaemons) error {
	return await(ctx, s.options.Runtime, daemons.controller(), func() (ovsdb.Row, bool, error) {
		row, err := daemons.integrationBridge(ctx)
		daemons.seen, _ = strconv.Atoi(row.Map("external_ids")[seenConfig])
		return row, daemons.seen >= s.config, err
	}, daemons.db, "Bridge", "external_ids")
}

// await waits for a daemon to change a column of a row until done. It asks a daemon that makes no
// change for its version, which lets it go through its main loop once more: an ovn-controller whose
// transaction was still under way when the switch answered does not report the number before its next
// turn, for which it otherwise waits five seconds.
func await(ctx context.Context, rt runtime.Runtime, process runtime.Daemon, done func() (ovsdb.Row, bool, error), db *ovsdb.Client, table, column string) error {
	const pause = 200 // ms, after which the daemon's state is checked
	for {
		row, ok, err := done()
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return timeoutError(ctx, rt, process)
		}
		if err := db.Transact(ctx, ovsdb.AwaitOther(table, row, column, pause)); err == nil || ctx.Err() != nil {
			continue
		} else if !strings.Contains(err.Error(), "timed out") {
			return err
		}
		state, err := rt.State(ctx, process)
		if err == nil && !state.Running {
			return &EndedError{process.Program, state.Problem}
		}
		_, _ = daemon.Ask(ctx, rt, process.RunDir, process.Program, "version") // one that does not answer may be busy
	}
}

// timeoutError returns the error for a daemon that was too slow.
func timeoutError(ctx context.Context, rt runtime.Runtime, d runtime.Daemon) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	problem := ""
	if status, err := daemon.Ask(ctx, rt, d.RunDir, d.Program, "connection-status"); err == nil {
		problem = "; its connection to the OVN SB database: " + strings.TrimSpace(string(status))
	}
	if last := daemon.LastError(d); last != "" {
		problem += "; it logged: " + last
	}
	return fmt.Errorf("%w: %s%s", ErrNotReady, d.Program, problem)
}

// portName is the name of an interface of a bridge, which the UUID stands for.
type portName struct{ bridge, name string }

// numberPorts gives a number to each port that ovn-controller has added, as ovs-vswitchd
// would: the next above every number that the bridge has used. An interface that takes the place of one
// with its name, as a tunnel whose options change, keeps its number: ovs-vswitchd knows interfaces by their names.
func (p *nodeDaemons) numberPorts(ctx context.Context) (added int, err error) {
	bridges, err := p.bridgeInterfaces(ctx)
	if err != nil {
		return 0, err
	}
	var changes []ovsdb.Change
	now := map[portName]int{}
	for bridge, interfaces := range bridges {
		for _, row := range interfaces {
			if number, _ := row.Int("ofport"); number < maxPort {
				p.last[bridge] = max(p.last[bridge], number)
			}
		}
		for _, row := range interfaces {
			at := portName{bridge, row.String("name")}
			number, numbered := row.Int("ofport")
			if !numbered && !p.existing[row.UUID] {
				if number = p.numbers[at]; number <= 0 {
					p.last[bridge]++
					number = p.last[bridge]
				}
				changes = append(changes, ovsdb.Update("Interface", row.UUID, ovsdb.Columns{"ofport": number}))
			}
			now[at] = number
		}
	}
	p.numbers = now
	return len(changes), p.db.Transact(ctx, changes...)
}

// maxPort is OFPP_MAX of OpenFlow 1.0: LOCAL and other reserved ports are above.
const maxPort = 0xff00

// bridgeInterfaces returns the interfaces of each bridge by its UUID. ovn-controller may add and delete ports meanwhile: tables are read
// from the bridges down, so that what a row refers to was there, and what is gone since is left out.
func (p *nodeDaemons) bridgeInterfaces(ctx context.Context) (map[string][]ovsdb.Row, error) {
	bridges, err := p.db.Select(ctx, "Bridge", "ports")
	if err != nil {
		return nil, err
	}
	ports, err := rowsByID(ctx, p.db, "Port", "interfaces")
	if err != nil {
		return nil, err
	}
	interfaces, err := rowsByID(ctx, p.db, "Interface", "name", "ofport")
	if err != nil {
		return nil, err
	}
	all := map[string][]ovsdb.Row{}
	for _, row := range bridges {
		for _, port := range row.UUIDs("ports") {
			for _, id := range ports[port].UUIDs("interfaces") {
				if iface, ok := interfaces[id]; ok {
					all[row.UUID] = append(all[row.UUID], iface)
				}
			}
		}
	}
	return all, nil
}

func rowsByID(ctx context.Context, db *ovsdb.Client, table string, columns ...string) (map[string]ovsdb.Row, error) {
	rows, err := db.Select(ctx, table, columns...)
	byID := map[string]ovsdb.Row{}
	for _, row := range rows {
		byID[row.UUID] = row
	}
	return byID, err
}

// sizes returns the size of the collected databases in bytes.
func (o Options) sizes() int64 {
	paths := []string{o.SB, o.NB}
	for _, node := range o.Nodes {
		paths = append(paths, node.Conf)
	}
	var size int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// TimeLimit returns the limit of Wait. ovn-controller takes 7 s for 13,655 logical flows (10 MB) when it
// starts, and a busy machine several times as long.
func (s *Scratch) TimeLimit() time.Duration {
	return time.Minute + time.Duration(s.options.sizes()>>20)*10*time.Second
}

// memoryAllowance returns how much more memory a daemon may use: ovn-controller takes about 100 MB
// for 13,655 logical flows (10 MB).
func (o Options) memoryAllowance(int64) int64 {
	const minimum, perByte = 1 << 30, 60
	return minimum + perByte*o.sizes()
}
