//go:build linux

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// helperName as os.Args[0] makes Main the helper. Arguments don't outlive
	// the exec of the daemon, so nothing of this reaches it.
	helperName = "ovs-offline-namespace"
	// launchMark names the variable by which all processes of one start are
	// found again, wherever they were reparented to.
	launchMark = "OVS_OFFLINE_LAUNCH"
	// noCollection spares the helper the garbage collector: it lives for some
	// milliseconds, a third of which that takes. A daemon doesn't get it.
	noCollection = "GOGC=off"
	// probeAnswer is what a helper without a daemon prints.
	probeAnswer = "isolated"
)

// setup is what the helper prepares before it becomes the daemon; more that
// needs the daemon's own namespace (a link with an address, say) goes here.
type setup struct {
	Loopback bool // raise lo; only in a network namespace of its own
}

// Main does nothing in an ordinary process. In one that this package started
// as its helper it makes ready the namespace, becomes the daemon and never
// returns. Call it before anything else in main, and in TestMain.
func Main() {
	if len(os.Args) < 2 || os.Args[0] != helperName {
		return
	}
	err := becomeDaemon(os.Args[1], os.Args[2:])
	fmt.Fprintf(os.Stderr, "preparing the daemon's namespace: %v\n", err)
	os.Exit(125)
}

func becomeDaemon(spec string, argv []string) error {
	var s setup
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	// Capabilities belong to a thread, and exec takes those of its own.
	goruntime.LockOSThread()
	if s.Loopback {
		if err := raiseLoopback(); err != nil {
			return err
		}
	}
	if err := renouncePrivileges(); err != nil {
		return err
	}
	if err := tidy(); err != nil {
		return err
	}
	if len(argv) == 0 {
		fmt.Println(probeAnswer)
		os.Exit(0)
	}
	return fmt.Errorf("%s: %w", argv[0], unix.Exec(argv[0], argv, slices.DeleteFunc(os.Environ(), func(v string) bool { return v == noCollection })))
}

// raiseLoopback sets lo up: without it ovs-vswitchd finds no route to a
// collector on 127.0.0.1 and leaves sFlow and IPFIX out of the datapath.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket to raise lo with: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("reading the flags of lo: %w", err)
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("raising lo: %w", err)
	}
	return nil
}

// renouncePrivileges leaves the thread no capability, and no way to get one:
// root would get all of them back at exec, were it not for no_new_privs.
func renouncePrivileges() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	return nil
}

// tidy keeps from a daemon that outlives its caller what it should not keep:
// files the caller happened to inherit, its umask, and the leave to dump core.
func tidy() error {
	unix.Umask(0o077)
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbidding core dumps: %w", err)
	}
	const first = 3 // after the standard ones
	if unix.CloseRange(first, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Linux before 5.11.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("listing inherited files: %w", err)
	}
	for _, entry := range entries {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// helper is the command that runs argv behind Main, in namespaces of its own
// if isolated. It leads a session, so a terminal's signals don't reach it.
func helper(isolated bool, env, argv []string) (*exec.Cmd, error) {
	if os.Getenv(launchMark) != "" {
		// Our own helper got here: running it on would start another, and so on.
		return nil, errors.New("process.Main is not called first in this program's main")
	}
	spec, err := json.Marshal(setup{Loopback: isolated})
	if err != nil {
		return nil, err
	}
	attributes := &syscall.SysProcAttr{Setsid: true}
	if isolated {
		// Each id stands for itself: files keep their owner, root is nobody special.
		attributes.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attributes.GidMappingsEnableSetgroups = false
		attributes.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	return &exec.Cmd{
		Path:        "/proc/self/exe", // this very program, even if its file was replaced meanwhile
		Args:        append([]string{helperName, string(spec)}, argv...),
		Env:         append(env, noCollection),
		Dir:         "/",
		SysProcAttr: attributes,
	}, nil
}

// probe makes a namespace as a daemon would get it. Nothing less tells: some
// systems forbid the clone, others let it pass and then deny what it is for.
func probe(ctx context.Context) error {
	l := newLaunch()
	cmd, err := helper(true, []string{l.variable}, nil)
	if err != nil {
		return err
	}
	said, err := l.run(ctx, cmd)
	if err == nil && strings.TrimSpace(said) != probeAnswer {
		err = errors.New("the helper did not answer")
	}
	if err != nil {
		return fmt.Errorf("a user and network namespace can't be had: %w%s%s", err, lastSaid(said), meaning(err))
	}
	return nil
}

// meaning explains what the kernel's errors stand for here.
func meaning(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return " (the limit user.max_user_namespaces or user.max_net_namespaces is reached)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return " (the system forbids them: kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp profile)"
	}
	return ""
}

// lastSaid is the last line of what a program printed, as an appendix.
func lastSaid(text string) string {
	lines := bytes.Split(bytes.TrimSpace([]byte(text)), []byte("\n"))
	last := string(lines[len(lines)-1])
	if last == "" {
		return ""
	}
	return ": " + last
}
