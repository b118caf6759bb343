//go:build linux

// Package keeper restores the network namespaces of a node in this machine's kernel and keeps them, in one
// process for each replica: this very program, started again in user, network, PID and mount namespaces of its
// own. When that process ends, in whatever way, the kernel ends all namespaces, their devices and every program
// that it started.
package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// Name is the first word of the command line of a keeper. The second is the path of its workdir.
const Name = "ovs-offline-namespaces"

// The descriptors that a keeper gets.
const (
	socketFD   = 3 // the socket at which it listens, bound and not listening
	lifelineFD = 4 // a pipe: its end before a byte was written ends the keeper
)

// memoryLimit is the heap size in bytes above which the garbage collector runs more often.
const memoryLimit = 320 << 20

// init makes a process that was started as a keeper one. Every program that can start a replica has this
// package, programs of tests too, so that each can start itself again as a keeper; no main function has to
// know it. In all other processes it compares one word.
func init() {
	if len(os.Args) == 2 && os.Args[0] == Name {
		debug.SetMemoryLimit(memoryLimit)
		fmt.Fprintln(os.Stderr, keep(os.Args[1]))
		os.Exit(1)
	}
}

// keeper is the process that keeps the namespaces of one replica.
type keeper struct {
	kernel   *kernel
	restored chan struct{} // closed when all is restored
	left     int           // recorded namespaces beyond maxSpaces
	report   []*report.Namespace
	spaces   []*space
	mu       sync.Mutex // one question at a time
}

// keep restores the namespaces of a workdir, and answers until it is asked to end. It returns why it can't.
func keep(path string) error {
	// It writes no files, and what it prints is short.
	const printed = 1 << 20
	if err := errors.Join(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: printed, Max: printed})); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	k := &keeper{kernel: readKernel(), restored: make(chan struct{})}
	listener, err := listen()
	if err != nil {
		return err
	}
	go endWithLifeline()
	if err := seal(path); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- k.restore(path) }()
	go k.serve(listener)
	if err := <-failed; err != nil {
		return err
	}
	close(k.restored)
	select {}
}

// listen begins to listen at the socket: here, so that the kernel names this process to those who connect.
func listen() (net.Listener, error) {
	if err := unix.Listen(socketFD, unix.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	file := os.NewFile(socketFD, "socket")
	defer func() { _ = file.Close() }()
	return net.FileListener(file)
}

// endWithLifeline ends this process if the one that started it ends before the start is complete.
func endWithLifeline() {
	unix.CloseOnExec(lifelineFD)
	file := os.NewFile(lifelineFD, "lifeline")
	if n, _ := file.Read(make([]byte, 1)); n == 0 {
		os.Exit(1)
	}
	_ = file.Close()
}

// seal makes everything read-only that this process and its children see of the host's files, except for the settings of
// its network namespaces in a /proc of its own, and leaves few devices and no folders of users. What is not possible is
// no error: the settings that can't be written then are named one by one.
func seal(path string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &readOnly); err != nil {
		_ = unix.Mount("", "/", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "") // before Linux 5.12
	}
	// A name in a rule leads to no server of names, of this host or another.
	for _, file := range []string{"/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts"} {
		_ = unix.Mount("/dev/null", file, "", unix.MS_BIND, "")
	}
	sealDevices()
	hideOthers(path)
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		_ = unix.MountSetattr(unix.AT_FDCWD, "/proc", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	}
	// What is mounted on itself stays as it is while all around becomes read-only.
	if err := unix.Mount("/proc/sys/net", "/proc/sys/net", "", unix.MS_BIND, ""); err == nil {
		_ = unix.MountSetattr(unix.AT_FDCWD, "/proc", 0, &readOnly)
	}
	return nil
}

// Bounds of what is restored: a report can have any number of namespaces, each of which takes descriptors, processes, memory of the kernel, and
// time at its end.
const (
	maxSpaces = 1000
	atOnce    = 32 // namespaces that are restored side by side
	// allTimeout bounds the restore of all namespaces: after it, none begins.
	allTimeout = 5 * time.Minute
)

// hideOthers hides all top folders but those of the system, with the sockets of other programs in them: /run, /var, /tmp,
// /home. Of these, only the workdir stays.
func hideOthers(path string) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // restore says that there is no workdir
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return
	}
	stays := []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "nix", "gnu", "proc", "sys", "dev"}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	for _, entry := range entries {
		folder := "/" + entry.Name()
		const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
		if !entry.IsDir() || slices.Contains(stays, entry.Name()) || unix.Mount("none", folder, "tmpfs", flags, "mode=0755") != nil {
			continue
		}
		if strings.HasPrefix(path+"/", folder+"/") {
			_ = os.MkdirAll(path, 0o755)
			_ = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), path, "", unix.MS_BIND|unix.MS_REC, "")
		}
		_ = unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "")
	}
}

// sealDevices leaves only the devices that a restore uses.
func sealDevices() {
	devices := []string{"null", "zero", "urandom", "net/tun"}
	fds := make([]int, len(devices))
	for i, name := range devices {
		fds[i], _ = unix.Open("/dev/"+name, unix.O_PATH|unix.O_CLOEXEC, 0) // -1 for a missing one, and mounting it fails
	}
	if unix.Mount("none", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755") != nil {
		return
	}
	_ = os.Mkdir("/dev/net", 0o755)
	for i, name := range devices {
		if fds[i] < 0 {
			continue
		}
		if file, err := os.Create("/dev/" + name); err == nil {
			_ = file.Close()
			_ = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fds[i]), "/dev/"+name, "", unix.MS_BIND, "")
		}
		_ = unix.Close(fds[i])
	}
	_ = unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// restore restores the namespaces, some of them side by side.
func (k *keeper) restore(path string) error {
	wd, err := workdir.Find(path)
	if err != nil {
		return err
	}
	recorded, err := netns.Read(&wd.Data)
	if err != nil {
		return err
	}
	k.left = max(0, len(recorded)-maxSpaces)
	recorded = recorded[:len(recorded)-k.left]
	tools, begun := findTools(), time.Now()
	turns := make(chan struct{}, atOnce)
	k.spaces = make([]*space, len(recorded))
	k.report = make([]*report.Namespace, len(recorded))
	var wg sync.WaitGroup
	for i, namespace := range recorded {
		k.report[i] = report.NewNamespace(namespace.Name)
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if time.Since(begun) > allTimeout {
				k.report[i].Reject(report.Devices, "all", "it was not tried: after %v, no namespace is begun", allTimeout)
				return
			}
			s, err := newSpace(namespace, k.kernel, tools, k.report[i], wd.Path())
			if err != nil {
				k.report[i].Remark("the namespace could not be made: %v", err)
				k.report[i].Reject(report.Devices, "all", "the namespace could not be made: %v", err)
				return
			}
			s.do(s.restore)
			k.spaces[i] = s
		})
	}
	wg.Wait()
	return nil
}

// space returns the restored namespace of a name.
func (k *keeper) space(name string) (*space, error) {
	for _, s := range k.spaces {
		if s != nil && s.recorded.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no network namespace %q was restored", name)
}

// serve answers clients.
func (k *keeper) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "accepting a connection:", err)
			os.Exit(1)
		}
		go k.talk(conn)
	}
}

// talk answers the requests of one connection until it ends.
func (k *keeper) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	decoder, encoder := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var request linux.Request
		if decoder.Decode(&request) != nil {
			return
		}
		response, err := k.answer(request)
		if err != nil {
			response.Error = err.Error()
		}
		if encoder.Encode(response) != nil {
			return
		}
		if request.Op == linux.OpEnd {
			os.Exit(0)
		}
	}
}

// answer answers one request. All but the one to end wait for the end of the restore.
func (k *keeper) answer(request linux.Request) (response linux.Response, err error) {
	if request.Op == linux.OpEnd {
		return response, nil
	}
	<-k.restored
	k.mu.Lock()
	defer k.mu.Unlock()
	switch request.Op {
	case linux.OpReport:
		response.Report = k.report
		if k.left > 0 {
			err = fmt.Errorf("only the first %d network namespaces are restored: %d more are not", maxSpaces, k.left)
		}
	case linux.OpNamespaces:
		for i, s := range k.spaces {
			if s != nil {
				response.Namespaces = append(response.Namespaces, s.describe(k.report[i]))
			}
		}
	case linux.OpPass:
		if request.Question == nil {
			return response, fmt.Errorf("a question without a frame")
		}
		response.Passage, err = k.pass(*request.Question)
	default:
		err = fmt.Errorf("unknown request %q", request.Op)
	}
	return response, err
}

// tools are the programs that restore rules, each "" if it is missing.
type tools struct {
	iptablesRestore, iptablesSave   string
	ip6tablesRestore, ip6tablesSave string
	nft, ipset                      string
}

// findTools finds the programs. Those of iptables have to be of the nftables kind: rules of the older kind can't
// be traced.
func findTools() tools {
	find := func(names ...string) string {
		for _, name := range names {
			for _, folder := range []string{"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/", "/usr/local/sbin/"} {
				if unix.Access(folder+name, unix.X_OK) == nil {
					return folder + name
				}
			}
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	}
	return tools{
		iptablesRestore: find("iptables-nft-restore"), iptablesSave: find("iptables-nft-save"),
		ip6tablesRestore: find("ip6tables-nft-restore"), ip6tablesSave: find("ip6tables-nft-save"),
		nft: find("nft"), ipset: find("ipset"),
	}
}
