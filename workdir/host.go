package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Host is the kind of what belongs to the machine and to no database: logs, packages, units, and
// what the programs of OVN print about themselves. It is not one of Kinds.
const Host Kind = "host"

// hostLogs is the folder of the logs below the folder of the kind Host.
const hostLogs = "logs"

// Names of outputs and texts that belong to the machine, in host/. The programs of OVN and the servers
// of the databases have theirs in front: ovn-controller.coverage.show, ovn-northd.status,
// ovsdb-server.memory.show, nb.memory.show, cluster.status.nb.
const (
	HostDate        = "date"
	HostUptime      = "uptime"
	HostKernel      = "uname"
	HostMemory      = "free"
	HostProcessors  = "lscpu"
	HostCommandLine = "proc.cmdline"
	HostProcesses   = "ps"
	HostDebs        = "dpkg"
	HostRPMs        = "rpm"
	HostUnits       = "systemctl.list-units"
	HostUnitFiles   = "systemctl.list-unit-files"
	HostSysctl      = "sysctl"
	HostRules       = "ip.rule"
	HostNeighbours  = "ip.neigh"
	HostLinks       = "ip.link"
	HostNftables    = "nft.ruleset"

	HostDeviceFeatures   = "ethtool.features"   // ethtool -k, of one device
	HostDeviceStatistics = "ethtool.statistics" // ethtool -S, of one device

	HostShownNB  = "ovn-nbctl.show"
	HostShownSB  = "ovn-sbctl.show"
	HostStatusNB = "cluster.status.nb" // of the OVN NB database
	HostStatusSB = "cluster.status.sb"

	HostCertificates = "certificates"  // subject, issuer and dates of public certificates
	HostCPUSets      = "nova.cpu-sets" // the lines of nova.conf with the processors of instances
	HostUnitMemory   = "cgroup.memory" // the memory of the units of Open vSwitch and OVN
)

// HostParts returns the name of the text with the rows of tables of a database that are known in part, in the form of printed tables.
// File.Partial says of each table what is known.
func HostParts(kind Kind) string { return string(kind) + ".part" }

// HostDevice returns the path of a recorded output about one network device of the machine.
func (d *Data) HostDevice(device, name string) string {
	return d.join(string(Host), "devices", EncodeName(device), name)
}

// HostRecorded returns the path of a recorded output that belongs to the machine.
func (d *Data) HostRecorded(name string) string { return d.join(string(Host), name) }

// HostLog returns the path of a log, present or rotated, of a program. name is that of the file on
// the node, or tells files of one name apart.
func (d *Data) HostLog(program, name string) string {
	return d.join(string(Host), hostLogs, EncodeName(program), EncodeName(name))
}

// ProgramOfLog returns the program of the log that a path in a workdir is of, "" for other files.
func ProgramOfLog(path string) string {
	rest, ok := strings.CutPrefix(path, filepath.Join(string(Host), hostLogs)+"/")
	if !ok {
		return ""
	}
	program, _ := DecodeName(filepath.Dir(rest))
	return program
}

// Log is a collected log of a program.
type Log struct {
	Program string // "ovs-vswitchd"; "journal" and "syslog" hold lines of several programs
	Path    string // of the file, which may be compressed
}

// HostLogs returns the collected logs, by program and by the name of the file.
func (d *Data) HostLogs() (logs []Log, err error) {
	top := d.HostRecorded(hostLogs)
	programs, err := os.ReadDir(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		name, ok := DecodeName(program.Name())
		if !program.IsDir() || !ok {
			continue
		}
		files, err := os.ReadDir(filepath.Join(top, program.Name()))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if file.Type().IsRegular() {
				logs = append(logs, Log{Program: name, Path: filepath.Join(top, program.Name(), file.Name())})
			}
		}
	}
	return logs, nil
}
