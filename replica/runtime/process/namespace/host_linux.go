package namespace

import (
	"syscall"
	"unsafe"

	"ovs-offline/replica/runtime/process/landlock"
)

// enterRoot makes the root file system of the process, and returns the rules for what Landlock restricts besides.
func (r Request) enterRoot() (rules landlock.Rules, f failure) {
	rules = landlock.Rules{AllFiles: true, TCP: r.OwnNetwork}
	if r.Root != "" {
		return rules, enter(r.Root, r.Folders)
	}
	if len(r.Reads) == 0 {
		return rules, failure{}
	}
	rules.AllFiles, rules.Read, rules.Write, rules.Use = false, append(r.Reads, "/proc", "/sys"), r.Folders, append(r.Uses, "/dev/null")
	rules.Read = append(rules.Read, "/dev/urandom", "/dev/random", "/dev/zero")
	if !r.OwnMounts() {
		return rules, failure{}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err == syscall.EPERM || err == syscall.EACCES {
		return rules, failure{} // a system may allow the namespace and forbid its use: Landlock has to do
	} else if err != nil {
		return rules, failed("separating the mounts from the host's", err)
	}
	rules.Write = append(rules.Write, "/tmp") // its own
	return rules, enterHost(r.Reads, r.Folders)
}

// enterHost makes a file system in memory the root, with some of the host's files read-only, and some folders as they are.
// Of /run, /tmp, /home and all else, with their sockets, nothing is left. As in enter, absolute paths are used only once the
// root has changed.
func enterHost(reads, shared []string) failure {
	defer syscall.Umask(syscall.Umask(0o022))
	folders := append([]string{"/proc", "/dev", "/sys/devices/system"}, shared...)
	host, failure := openFolders(folders)
	if failure.errno != 0 {
		return failure
	}
	files := make([]int, len(reads))
	for i, path := range reads {
		fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
		if err != nil {
			fd = missing
		}
		files[i] = fd
	}
	if failure := changeRoot("/usr"); failure.errno != 0 { // any folder will do: it is open
		return failure
	}
	if failure := mountProc(host[0]); failure.errno != 0 {
		return failure
	}
	for i, path := range reads {
		if err := mountReadOnly(files[i], path); err != nil {
			return failed("mounting "+path, err)
		}
	}
	if err := mountReadOnly(host[2], folders[2]); err != nil {
		return failed("mounting "+folders[2], err)
	}
	if failure := mountDevices(host[1]); failure.errno != 0 {
		return failure
	}
	if err := makeFolder("/tmp"); err != nil {
		return failed("creating /tmp", err)
	}
	for i, path := range shared {
		if failure := mountShared(host[3+i], path); failure.errno != 0 {
			return failure
		}
	}
	for _, fd := range append(host, files...) {
		syscall.Close(fd) // fails for a missing file
	}
	if err := syscall.Unmount("/", syscall.MNT_DETACH); err != nil {
		return failed("leaving the host's root", err)
	}
	return failed("entering /", syscall.Chdir("/"))
}

// mountReadOnly mounts an open file or folder of the host at its path, without setuid programs and devices.
func mountReadOnly(fd int, path string) error {
	if fd == missing {
		return nil
	}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			if err := makeFolder(path[:i]); err != nil {
				return err
			}
		}
	}
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return err
	}
	makePoint := makeFile
	if info.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		makePoint = makeFolder
	}
	if err := mountAt("/proc/self/fd/"+decimal(fd), path, makePoint); err != nil {
		return err
	}
	const mountSetattr, atRecursive = 442, 0x8000 // mount_setattr(2), the same on all architectures
	here, name := -100, append([]byte(path), 0)   // AT_FDCWD
	attr := struct{ set, clear, propagation, namespace uint64 }{set: syscall.MS_RDONLY | harmless}
	_, _, errno := syscall.RawSyscall6(mountSetattr, uintptr(here), uintptr(unsafe.Pointer(&name[0])), atRecursive,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno == 0 {
		return nil
	}
	var state syscall.Statfs_t // before Linux 5.12
	if err := syscall.Statfs(path, &state); err != nil {
		return err
	}
	return syscall.Mount("", path, "", uintptr(syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|harmless)|uintptr(state.Flags)&syscall.MS_NOEXEC, "")
}
