//go:build linux

package keeper_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// live is a network namespace as a node has it, made by the commands that agents run. It ends with the test.
type live struct {
	t    *testing.T
	name string
	work chan func()
	taps map[string]int // descriptors by name
}

// newLive makes a network namespace, which needs root.
func newLive(t *testing.T, name string) *live {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a live network namespace needs root")
	}
	ovs.Need(t, "ip", "iptables-nft", "iptables-nft-save", "ip6tables-nft-save", "sysctl")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip(err)
	}
	l := &live{t: t, name: name, work: make(chan func()), taps: map[string]int{}}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		made <- unix.Unshare(unix.CLONE_NEWNET)
		for work := range l.work {
			work()
		}
	}()
	if err := <-made; err != nil {
		t.Skip("a network namespace: ", err)
	}
	t.Cleanup(func() {
		for _, fd := range l.taps {
			_ = unix.Close(fd)
		}
		close(l.work)
	})
	l.run("ip link set lo up")
	return l
}

func (l *live) do(work func()) {
	done := make(chan struct{})
	l.work <- func() { defer close(done); work() }
	<-done
}

// command runs a program in the namespace and returns its output.
func (l *live) command(stdin string, argv ...string) string {
	l.t.Helper()
	var stdout, stderr bytes.Buffer
	var err error
	l.do(func() {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		err = cmd.Run()
	})
	if err != nil {
		l.t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, stderr.String())
	}
	return stdout.String()
}

// run runs commands, a line each.
func (l *live) run(commands string) {
	l.t.Helper()
	for line := range strings.Lines(commands) {
		if words := strings.Fields(line); len(words) > 0 {
			l.command("", words...)
		}
	}
}

// tap adds a device.
func (l *live) tap(name, mac string) {
	l.t.Helper()
	var err error
	l.do(func() {
		var fd int
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return
		}
		l.taps[name] = fd
		request, _ := unix.NewIfreq(name)
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	})
	if err != nil {
		l.t.Fatal("a tap: ", err)
	}
	l.run("ip link set " + name + " address " + mac)
	l.command("", "sysctl", "-qw", "net.ipv6.conf."+strings.ReplaceAll(name, ".", "/")+".addr_gen_mode=1")
	l.run("ip link set " + name + " up")
}

// send puts a frame into a device and returns what comes out of all: all of it within a quarter of a second.
func (l *live) send(device string, frame []byte) (out []linux.Frame) {
	l.t.Helper()
	l.read()
	if _, err := unix.Write(l.taps[device], frame); err != nil {
		l.t.Fatal(err)
	}
	for deadline := time.Now().Add(250 * time.Millisecond); time.Now().Before(deadline) &&
		len(out) == 0; time.Sleep(time.Millisecond) {
		out = append(out, l.read()...)
	}
	return append(out, l.read()...)
}

// read returns what came out of all devices.
func (l *live) read() (out []linux.Frame) {
	buffer := make([]byte, 70000)
	names := make([]string, 0, len(l.taps))
	for name := range l.taps {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for {
			n, err := unix.Read(l.taps[name], buffer)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				break
			}
			out = append(out, linux.Frame{Device: name, Bytes: bytes.Clone(buffer[:n])})
		}
	}
	return out
}

// newWorkdir returns an empty workdir.
func newWorkdir(t *testing.T) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	return wd
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// record records the namespace into a workdir, with the commands of sos.
func (l *live) record(wd *workdir.Dir) {
	l.t.Helper()
	path := func(name string) string { return wd.NamespaceRecorded(l.name, name) }
	for name, command := range map[string]string{
		workdir.RecordedLinks:        "ip -d address show",
		workdir.RecordedKernelRoutes: "ip route show table all",
		workdir.HostRules:            "ip rule list",
		workdir.NamespaceRules6:      "ip -6 rule list",
		workdir.HostNeighbours:       "ip neigh show",
		workdir.NamespaceFilters:     "iptables-nft-save",
		workdir.NamespaceFilters6:    "ip6tables-nft-save",
	} {
		write(l.t, path(name), l.command("", strings.Fields(command)...))
	}
	var sysctl string
	for line := range strings.Lines(l.command("", "sysctl", "-e", "-a", "-r", "^net\\.")) {
		sysctl += line
	}
	write(l.t, path(workdir.HostSysctl), sysctl)
	for name, argv := range map[string][]string{
		workdir.NamespaceConntrack: {"conntrack", "-L", "-o", "extended"},
		workdir.NamespaceSets:      {"ipset", "save"},
		workdir.HostNftables:       {"nft", "-a", "list", "ruleset"},
	} {
		if _, err := exec.LookPath(argv[0]); err == nil {
			write(l.t, path(name), l.command("", argv...))
		}
	}
}

// inside runs a program in a restored namespace and returns its output.
func inside(t *testing.T, wd *workdir.Dir, namespace string, argv ...string) string {
	t.Helper()
	line, err := linux.Enter(t.Context(), wd, namespace, argv)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	return string(out)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
