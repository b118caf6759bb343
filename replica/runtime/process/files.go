//go:build linux

package process

import (
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/replica/runtime/process/landlock"
)

// systemFiles lists what daemons and tools of this host can read and execute of it. It has the folders of programs, in which
// there are no secrets, and of /etc only what strace(1) saw the programs of OVS and OVN, and the libraries that they
// use, open.
var systemFiles = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/hosts", "/etc/nsswitch.conf",
	"/etc/protocols", "/etc/services", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies",
}

// readable returns the files and folders of this host that a program can read: systemFiles, and those of a build that is
// installed elsewhere. Without Folders, all files stay.
func (o Options) readable(argv []string) []string {
	if len(o.Folders) == 0 {
		return nil
	}
	list := slices.Clone(systemFiles)
	if len(argv) == 0 {
		return list
	}
	programs := []string{argv[0]}
	if real, err := filepath.EvalSymlinks(argv[0]); err == nil {
		programs = append(programs, real)
	}
	for _, program := range programs {
		folder := filepath.Dir(program)
		prefix := filepath.Dir(folder)
		for _, path := range []string{folder, prefix + "/lib", prefix + "/lib64", prefix + "/libexec", prefix + "/share"} {
			if path = filepath.Clean(path); !slices.ContainsFunc(list, func(known string) bool { return isBelow(path, known) }) {
				list = append(list, path)
			}
		}
	}
	return list
}

// isBelow reports whether a path is a folder or below it.
func isBelow(path, folder string) bool { return strings.HasPrefix(path+"/", folder+"/") }

// rules returns what a tool of this host keeps of its files.
func (o Options) rules(argv []string) landlock.Rules {
	list := o.readable(argv)
	return landlock.Rules{AllFiles: list == nil, Read: append(list, "/proc", "/sys", "/dev/urandom"), Write: o.Folders, Use: []string{"/dev/null"}}
}
