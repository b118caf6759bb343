package anonymise

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/lines"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// handling is what is done with a file of a workdir.
type handling int

const (
	leaveOut handling = iota
	asDatabase
	asText
	asProse // a text for people
)

// handlingOf returns what is done with the file at a path in a workdir. Files of the other members of a cluster, and
// the end of a database's file, are no databases by themselves.
func handlingOf(path string) handling {
	parts := strings.Split(path, "/")
	switch {
	case filepath.Ext(path) == ".db":
		if parts[0] == "db" && len(parts) == 3 {
			return asDatabase
		}
		return leaveOut
	case slices.Contains([]string{".gz", ".xz", ".zst", ".bz2", ".zip"}, filepath.Ext(path)):
		return leaveOut
	case parts[0] == string(workdir.Host) && !isOfNetwork(filepath.Base(path)):
		return asProse
	}
	return asText
}

// isOfNetwork reports whether an output about the machine belongs to its network namespace.
func isOfNetwork(name string) bool {
	for _, prefix := range []string{"ip.", "iptables", "ip6tables", "nft", "ipset", "conntrack", "sysctl", "tc.", "ovn-nbctl.", "ovn-sbctl.",
		workdir.HostParts(workdir.OVS), workdir.HostParts(workdir.NB), workdir.HostParts(workdir.SB)} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// path returns the path of a file in a workdir with everything replaced that is no name of a workdir's own (docs/workdir.md):
// the names of bridges, namespaces, devices, pods, members of clusters, and of files that somebody added.
func (r *renamer) path(path string) string {
	parts := strings.Split(path, "/")
	last := len(parts) - 1
	for i := 1; i < last; i++ {
		if isFixed := slices.Contains(folders, parts[i]) && (i == 1 || parts[0] == "db"); !isFixed {
			parts[i] = r.encoded(parts[i])
		}
	}
	name, ending := parts[last], ""
	switch {
	case last == 0:
		return r.encoded(name)
	case parts[0] == "restore_flows":
		ending = filepath.Ext(name)
		ending = filepath.Ext(strings.TrimSuffix(name, ending)) + ending
	case isOutput(name):
		return strings.Join(parts, "/")
	case strings.Contains(name, ".OpenFlow1"):
		ending = filepath.Ext(name)
	}
	parts[last] = r.encoded(strings.TrimSuffix(name, ending)) + ending
	return strings.Join(parts, "/")
}

// folders are those of a workdir that have fixed names and are in others.
var folders = []string{"ovs", "ovn_nb", "ovn_sb", "bridges", "namespaces", "devices", "logs", "members", "libovsdb", "printed"}

// isOutput reports whether a file has one of the names that files have in every workdir.
func isOutput(name string) bool {
	return slices.Contains([]string{"conf.db", "ovnnb_db.db", "ovnsb_db.db", "tables.txt", "tail.db", "services.json", workdir.HostCertificates,
		workdir.HostCPUSets, workdir.HostUnitMemory}, name) ||
		slices.ContainsFunc(recording.Commands(), func(c recording.Command) bool { return string(c.Name) == name })
}

// encoded replaces what a file is named for.
func (r *renamer) encoded(name string) string {
	if decoded, ok := workdir.DecodeName(name); ok {
		name = decoded
	}
	return workdir.EncodeName(r.name(name))
}

// errNoText is the error for a file that can't be read as a text.
var errNoText = errors.New("it is no text")

// eachLine calls use with each line of a file, with its end.
func eachLine(path string, use func(line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if bytes.IndexByte(part, 0) >= 0 {
			return errNoText
		}
		if len(line)+len(part) > lines.Longest {
			return fmt.Errorf("a line has more than %d bytes", lines.Longest)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 {
			if err := use(line); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		line = line[:0]
	}
}
