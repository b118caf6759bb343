package namespace

import "syscall"

// The limits of a daemon (setrlimit(2)). None is near what a replica needs; together they keep a daemon that is taken
// over from filling the memory or one file without end.
const (
	maxFile      = 16 << 30 // bytes: more than any database that ovsdb-server can hold in the memory of most machines
	leastData    = 4 << 30  // bytes of memory, on a machine that has less than twice as much
	maxProcesses = 4096     // and threads: ovs-vswitchd has about two for each core

	rlimitProcesses = 6 // RLIMIT_NPROC, which package syscall lacks
)

// limit gives the process the limits. The number of processes is limited in a user namespace only: elsewhere, and before Linux
// 5.14, the kernel counts all processes of the user, which may be many more. It does not hold for root of the host.
func limit(ownUsers bool) failure {
	data := uint64(leastData)
	var machine syscall.Sysinfo_t
	if err := syscall.Sysinfo(&machine); err == nil {
		data = max(data, uint64(machine.Totalram)*uint64(machine.Unit)/2)
	}
	type bound struct {
		what string
		kind int
		most uint64
	}
	limits := []bound{{"core dumps", syscall.RLIMIT_CORE, 0}, {"files", syscall.RLIMIT_FSIZE, maxFile}, {"memory", syscall.RLIMIT_DATA, data}}
	if ownUsers && release() >= 5*1000+14 {
		limits = append(limits, bound{"processes", rlimitProcesses, maxProcesses})
	}
	for _, l := range limits {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.kind, &now); err != nil {
			return failed("reading the limit of "+l.what, err)
		}
		now.Max = min(now.Max, l.most)
		now.Cur = min(now.Cur, now.Max)
		if err := syscall.Setrlimit(l.kind, &now); err != nil {
			return failed("limiting "+l.what, err)
		}
	}
	return failure{}
}

// release returns the kernel's version: 5014 for 5.14.
func release() int {
	var name syscall.Utsname
	if err := syscall.Uname(&name); err != nil {
		return 0
	}
	numbers := [2]int{}
	part := 0
	for _, char := range name.Release {
		switch {
		case char >= '0' && char <= '9':
			numbers[part] = 10*numbers[part] + int(char-'0')
		case char == '.' && part == 0:
			part++
		default:
			return 1000*numbers[0] + numbers[1]
		}
	}
	return 1000*numbers[0] + numbers[1]
}
