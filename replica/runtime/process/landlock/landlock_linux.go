// Package landlock keeps a thread, and every program that it becomes or starts, to some of this host's files, by
// Landlock (landlock(7)), which needs no privilege. Like package namespace, which uses it before main, it imports only
// syscall and unsafe.
package landlock

import (
	"syscall"
	"unsafe"
)

// Rules are what a thread keeps.
type Rules struct {
	AllFiles bool     // it keeps all files: only signals, sockets and other processes are restricted
	Read     []string // files and folders that it can read and execute; missing ones are left out
	Write    []string // folders in which it can do everything but execute and make devices; missing ones are left out
	Use      []string // files, and folders with files, that it can read and write, and not list, make or remove
	TCP      bool     // it can use TCP sockets
}

// The system calls have the same numbers on all architectures (linux/landlock.h, and syscall_64.tbl of Linux).
const (
	createRuleset = 444
	addRule       = 445
	restrictSelf  = 446

	createRulesetVersion = 1
	pathBeneath          = 1
)

// Rights to files (linux/landlock.h).
const (
	execute    = 1 << 0
	writeFile  = 1 << 1
	readFile   = 1 << 2
	readFolder = 1 << 3
	makeChar   = 1 << 6
	makeBlock  = 1 << 11
	refer      = 1 << 13
	truncate   = 1 << 14
	ioctl      = 1 << 15

	ofFiles = execute | writeFile | readFile | truncate | ioctl // all others are rights to folders
	reading = execute | readFile | readFolder
)

// Rights to sockets and processes (linux/landlock.h).
const (
	bothOfTCP          = 3 // to bind and to connect
	abstractAndSignals = 3 // abstract unix sockets, and signals to processes without these rules
)

// oPath is O_PATH, which package syscall lacks.
const oPath = 0x200000

// Version returns the version of Landlock that the kernel has; 0 if it has none, or none that is in use.
func Version() int {
	version, _, errno := syscall.RawSyscall(createRuleset, 0, 0, createRulesetVersion)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// handled returns the rights to files that a version of Landlock knows.
func handled(version int) uint64 {
	rights := uint64(refer - 1) // of version 1
	for i, right := range []uint64{refer, truncate, 0, ioctl} {
		if version >= 2+i {
			rights |= right
		}
	}
	return rights
}

// Restrict restricts the calling thread, which has no_new_privs, as far as the kernel can; without Landlock it does
// nothing. The caller keeps the goroutine on its thread (runtime.LockOSThread).
func Restrict(rules Rules) syscall.Errno {
	version := Version()
	if version == 0 {
		return 0
	}
	var attr struct{ files, network, scoped uint64 } // struct landlock_ruleset_attr
	if !rules.AllFiles {
		attr.files = handled(version)
	}
	if version >= 4 && !rules.TCP {
		attr.network = bothOfTCP
	}
	if version >= 6 {
		attr.scoped = abstractAndSignals
	}
	if attr.files|attr.network|attr.scoped == 0 {
		return 0
	}
	// An older kernel takes the longer struct if what it does not know is 0.
	ruleset, _, errno := syscall.RawSyscall(createRuleset, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	defer syscall.Close(int(ruleset))
	for _, allowed := range []struct {
		paths  []string
		rights uint64
	}{
		{rules.Read, reading},
		{rules.Write, ^uint64(execute | makeChar | makeBlock)},
		{rules.Use, writeFile | readFile | truncate | ioctl},
	} {
		for _, path := range allowed.paths {
			if errno := allow(int(ruleset), path, allowed.rights&attr.files); errno != 0 {
				return errno
			}
		}
	}
	_, _, errno = syscall.RawSyscall(restrictSelf, ruleset, 0, 0)
	return errno
}

// allow adds rights to a file, or to all below a folder, to a ruleset. It leaves out a path that can't be opened.
func allow(ruleset int, path string, rights uint64) syscall.Errno {
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return 0
	}
	if info.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= ofFiles
	}
	if rights == 0 {
		return 0
	}
	var attr [12]byte // struct landlock_path_beneath_attr is packed: 64 bits of rights and 32 bits of the descriptor
	*(*[8]byte)(attr[:]) = *(*[8]byte)(unsafe.Pointer(&rights))
	*(*[4]byte)(attr[8:]) = *(*[4]byte)(unsafe.Pointer(&[1]int32{int32(fd)}))
	_, _, errno := syscall.RawSyscall6(addRule, uintptr(ruleset), pathBeneath, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	return errno
}
