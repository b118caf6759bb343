//go:build linux

package keeper

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime/process/filter"
	"ovs-offline/replica/runtime/process/landlock"
)

// programFiles lists what iptables, nft and ipset read and execute of this host: their programs, libraries and names.
var programFiles = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/etc/alternatives",
	"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/protocols", "/etc/services", "/etc/ethertypes", "/etc/iproute2",
	"/etc/xtables", "/proc", "/dev/urandom"}

// confine leaves the calling thread of a namespace, and all programs that it starts, what a restore needs: the capabilities
// for networks, the workdir at a path to read, and of the host's files those of the programs; and no new privileges. The
// programs read what others wrote.
func confine(path string) error {
	for capability := uintptr(0); ; capability++ {
		if capability == unix.CAP_NET_ADMIN || capability == unix.CAP_NET_RAW {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // it is above the last one
		} else if err != nil {
			return fmt.Errorf("dropping a capability: %w", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	kept := uint32(1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW)
	data := [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	rules := landlock.Rules{Read: append([]string{path}, programFiles...), Use: []string{"/proc/sys/net", "/dev/null", "/dev/net/tun"}, TCP: true}
	if err := filter.Install(rules, filter.OwnNetwork); err != nil && !errors.Is(err, filter.ErrUnavailable) {
		return err
	}
	return nil
}
