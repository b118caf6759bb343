//go:build linux

package keeper

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/report"
	"ovs-offline/workdir/netns"
)

// space is a restored network namespace. One thread of this process is in it, and does everything that depends
// on the namespace of the caller.
type space struct {
	recorded netns.Namespace
	kernel   *kernel
	tools    tools
	report   *report.Namespace
	work     chan func()
	file     *os.File // the namespace
	handle   *netlink.Handle
	devices  []*device
	byName   map[string]*device
	events   int // the socket of what netfilter reports: see events.go
	rules    *ruleTexts
	saved    []string // the tables that iptables-save and ip6tables-save printed, as "ip nat"
	flows    *connections
	mark     uint32         // of the frame that passes now
	tables   map[string]int // numbers of tables that have names

	shared map[string]bool // tables that rules of iptables share: "hashlimit NAME"
}

// newSpace makes a network namespace for the workdir at a path.
func newSpace(recorded netns.Namespace, k *kernel, t tools, r *report.Namespace, path string) (*space, error) {
	s := &space{recorded: recorded, kernel: k, tools: t, report: r, work: make(chan func()), byName: map[string]*device{}, events: -1}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread is in the namespace
		err := s.enter()
		if err == nil {
			err = confine(path)
		}
		made <- err
		if err != nil {
			return
		}
		for work := range s.work {
			work()
		}
	}()
	return s, <-made
}

// enter makes the network namespace of the calling thread.
func (s *space) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	var err error
	if s.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	s.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	return err
}

// do runs a function on the thread of the namespace.
func (s *space) do(work func()) {
	done := make(chan struct{})
	s.work <- func() { defer close(done); work() }
	<-done
}

// restoreTimeout bounds the restore of one namespace.
const restoreTimeout = 60 * time.Second

// restore restores everything, on the thread of the namespace.
func (s *space) restore() {
	ctx, cancel := context.WithTimeout(context.Background(), restoreTimeout)
	defer cancel()
	s.resetSettings()
	s.quieten()
	s.makeDevices()
	s.applySettings()
	s.configureDevices()
	s.addRoutes()
	s.addRules()
	s.addNeighbours()
	s.restoreSets(ctx)
	s.restoreFilters(ctx)
	s.remarkRulesOfVRFs()
	s.restoreConnections(ctx)
	s.watch(ctx)
	s.readBack()
}

// describe returns the namespace as it was restored.
func (s *space) describe(r *report.Namespace) linux.Namespace {
	n := linux.Namespace{Name: s.recorded.Name, Missing: r.Remarks}
	n.File = fmt.Sprintf("fd/%d", s.file.Fd())
	for _, entry := range r.Named {
		n.Missing = append(n.Missing, fmt.Sprintf("%s: %s: %s", entry.Part.Title(), entry.Reason, entry.Text))
	}
	for _, d := range s.devices {
		one := linux.Device{Name: d.recorded.Name, MAC: d.recorded.MAC, MTU: d.recorded.MTU, Up: d.recorded.Up, Open: d.fd >= 0, Master: d.recorded.Master}
		for _, assigned := range d.recorded.Assigned {
			one.Addresses = append(one.Addresses, assigned.Network)
		}
		n.Devices = append(n.Devices, one)
	}
	return n
}
