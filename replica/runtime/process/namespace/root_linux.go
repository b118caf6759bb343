package namespace

import "syscall"

// The flags of mounts.
const (
	bindAll    = syscall.MS_BIND | syscall.MS_REC // the kernel refuses to bind a folder without what the host mounted below it
	harmless   = syscall.MS_NOSUID | syscall.MS_NODEV
	oPath      = 0x200000 // O_PATH, which package syscall lacks
	memoryType = "tmpfs"
)

// memorySize limits a file system in memory. It holds mount points, and what programs
// write to /tmp.
const memorySize = "mode=0755,size=256m"

// ownFolders lists the top folders of a root that are not the image's.
var ownFolders = []string{"dev", "proc", "tmp"}

// devices lists the host's devices that programs see.
var devices = []string{"full", "null", "random", "urandom", "zero"}

// enter makes a folder with an image's files the root of this process, which has a mount
// namespace of its own. The root itself is a file system in memory, on which the entries
// of the image are mounted read-only, so that mount points need not exist in the image.
// Of the host, only /proc, a few devices and the shared folders are visible. Absolute
// paths are used only once the image is the root: until then, a symbolic link of the
// image would lead to the host's files.
func enter(image string, shared []string) failure {
	defer syscall.Umask(syscall.Umask(0o022))
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return failed("separating the mounts from the host's", err)
	}
	source, failure := readOnly(image)
	if failure.errno != 0 {
		return failure
	}
	host, failure := openFolders(append([]string{"/proc", "/dev"}, shared...))
	if failure.errno != 0 {
		return failure
	}
	if failure := changeRoot(image); failure.errno != 0 {
		return failure
	}
	if failure := mountEntries(source, "/", firstNames(shared)); failure.errno != 0 {
		return failure
	}
	if failure := mountProc(host[0]); failure.errno != 0 {
		return failure
	}
	if failure := mountDevices(host[1]); failure.errno != 0 {
		return failure
	}
	if err := makeFolder("/tmp"); err != nil {
		return failed("creating /tmp", err)
	}
	for i, path := range shared {
		if failure := mountShared(host[2+i], path); failure.errno != 0 {
			return failure
		}
	}
	for _, fd := range append(host, source) {
		syscall.Close(fd) // fails for a missing folder
	}
	// The host's root is mounted above the new one: see pivot_root(2).
	if err := syscall.Unmount("/", syscall.MNT_DETACH); err != nil {
		return failed("leaving the host's root", err)
	}
	return failed("entering /", syscall.Chdir("/"))
}

// readOnly makes a folder a read-only mount without setuid programs and devices, and opens it.
func readOnly(path string) (fd int, failure failure) {
	if err := syscall.Mount(path, path, "", bindAll, ""); err != nil {
		return 0, failed("mounting "+path, err)
	}
	var state syscall.Statfs_t
	if err := syscall.Statfs(path, &state); err != nil {
		return 0, failed("examining "+path, err)
	}
	// The host's noexec must be kept: the kernel would refuse to change it.
	flags := uintptr(syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|harmless) | uintptr(state.Flags)&syscall.MS_NOEXEC
	if err := syscall.Mount("", path, "", flags, ""); err != nil {
		return 0, failed("mounting "+path+" read-only", err)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	return fd, failed("opening "+path, err)
}

// missing is the descriptor of a folder that does not exist.
const missing = -1

// openFolders opens folders of the host, in order to mount them later.
func openFolders(paths []string) (fds []int, f failure) {
	for _, path := range paths {
		fd, err := syscall.Open(path, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err == syscall.ENOENT {
			fd = missing
		} else if err != nil {
			return nil, failed("opening "+path, err)
		}
		fds = append(fds, fd)
	}
	return fds, failure{}
}

// changeRoot covers a folder with an empty file system in memory and makes that the
// root. The earlier root stays mounted above it.
func changeRoot(path string) failure {
	if err := syscall.Mount(memoryType, path, memoryType, harmless, memorySize); err != nil {
		return failed("mounting a file system in memory", err)
	}
	if err := syscall.Chdir(path); err != nil {
		return failed("entering "+path, err)
	}
	return failed("changing the root", syscall.PivotRoot(".", "."))
}

// mountEntries mounts every entry of an open folder at its name in target, except those
// of the names in without and, if the target is /, those that are not the image's.
// Symbolic links are copied.
func mountEntries(folder int, target string, without []string) failure {
	prefix := target + "/"
	if target == "/" {
		prefix = "/"
	}
	names, err := list(folder)
	if err == nil {
		err = syscall.Fchdir(folder)
	}
	if err != nil {
		return failed("reading the image's "+target, err)
	}
	for _, name := range names {
		var info syscall.Stat_t
		err := syscall.Lstat(name, &info)
		kind := info.Mode & syscall.S_IFMT
		switch {
		case target == "/" && contains(ownFolders, name):
			continue
		case err != nil:
		case kind == syscall.S_IFLNK && contains(without, name):
			continue // it may lead nowhere, and a folder is needed
		case kind == syscall.S_IFLNK:
			err = copyLink(name, prefix+name)
		case kind == syscall.S_IFDIR:
			err = mountAt(name, prefix+name, makeFolder)
		case kind == syscall.S_IFREG:
			err = mountAt(name, prefix+name, makeFile)
		}
		if err != nil {
			return failed("mounting the image's "+prefix+name, err)
		}
	}
	return failure{}
}

// mountAt makes a mount point and mounts source there.
func mountAt(source, target string, makePoint func(string) error) error {
	if err := makePoint(target); err != nil {
		return err
	}
	return syscall.Mount(source, target, "", bindAll, "")
}

func makeFolder(path string) error {
	if err := syscall.Mkdir(path, 0o755); err != syscall.EEXIST {
		return err
	}
	return nil
}

func makeFile(path string) error {
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_CLOEXEC, 0o644)
	if err == nil {
		syscall.Close(fd)
	}
	return err
}

func copyLink(name, at string) error {
	target := make([]byte, syscall.PathMax)
	n, err := syscall.Readlink(name, target)
	if err != nil {
		return err
	}
	return syscall.Symlink(string(target[:n]), at)
}

// mountProc mounts the host's /proc read-only and without /proc/sys: root could change
// the host's settings there even without privileges.
func mountProc(proc int) failure {
	err := syscall.Fchdir(proc)
	if err == nil {
		err = mountAt(".", "/proc", makeFolder)
	}
	if err == nil {
		err = syscall.Mount("", "/proc", "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|syscall.MS_NOEXEC|harmless, "")
	}
	if err == nil {
		err = syscall.Mount(memoryType, "/proc/sys", memoryType, syscall.MS_RDONLY|harmless, memorySize)
	}
	return failed("mounting /proc", err)
}

// mountDevices makes /dev with the devices that a program may need, and the usual links.
func mountDevices(dev int) failure {
	err := makeFolder("/dev")
	if err == nil {
		err = syscall.Fchdir(dev)
	}
	for _, name := range devices {
		if err == nil {
			err = mountAt(name, "/dev/"+name, makeFile)
		}
	}
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		if err == nil {
			err = syscall.Symlink("/proc/self/fd/"+string(rune('0'+i)), "/dev/"+name)
		}
	}
	if err == nil {
		err = syscall.Symlink("/proc/self/fd", "/dev/fd")
	}
	return failed("making /dev", err)
}

// mountShared mounts an open folder of the host at its path.
func mountShared(folder int, path string) failure {
	if folder == missing {
		return failure{}
	}
	parent := "/"
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		err := makeFolder(path[:i])
		if err == syscall.EROFS {
			if failure := cover(parent); failure.errno != 0 {
				return failure
			}
			err = makeFolder(path[:i])
		}
		if err != nil {
			return failed("creating "+path[:i]+" in the root of the image", err)
		}
		parent = path[:i]
	}
	if err := syscall.Fchdir(folder); err != nil {
		return failed("entering "+path, err)
	}
	return failed("mounting "+path, syscall.Mount(".", path, "", bindAll, ""))
}

// cover replaces a folder of the image by a writable one with the same entries.
func cover(path string) failure {
	folder, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return failed("reading the image's "+path, err)
	}
	if err := syscall.Mount(memoryType, path, memoryType, harmless, memorySize); err != nil {
		return failed("mounting a file system in memory at "+path, err)
	}
	return mountEntries(folder, path, nil)
}

// list returns the names in an open folder.
func list(folder int) (names []string, err error) {
	for block := make([]byte, 8192); ; {
		n, err := syscall.ReadDirent(folder, block)
		if n <= 0 || err != nil {
			return names, err
		}
		_, _, names = syscall.ParseDirent(block[:n], -1, names)
	}
}

// firstNames returns the first name of each path.
func firstNames(paths []string) []string {
	var names []string
	for _, path := range paths {
		end := 1
		for end < len(path) && path[end] != '/' {
			end++
		}
		names = append(names, path[1:end])
	}
	return names
}

func contains(names []string, name string) bool {
	for _, known := range names {
		if known == name {
			return true
		}
	}
	return false
}
