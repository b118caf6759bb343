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

// path returns the path of a file in a workdir with the names of bridges, namespaces, devices and pods replaced.
func (r *renamer) path(path string) string {
	parts := strings.Split(path, "/")
	last := len(parts) - 1
	within := func(folders ...string) bool {
		return len(parts) > len(folders) && slices.Equal(parts[:len(folders)], folders)
	}
	switch {
	case within("recorded", "bridges"), within("recorded", "namespaces"), within("host", "devices"):
		parts[2] = r.encoded(parts[2])
	case within("host", "logs"), filepath.Base(filepath.Dir(path)) == "libovsdb":
		for i := 2; i <= last; i++ {
			parts[i] = r.encoded(parts[i])
		}
	case within("restore_flows") && strings.HasSuffix(path, ".dump"):
		bridge := strings.TrimSuffix(parts[last], ".dump")
		kind := filepath.Ext(bridge)
		parts[last] = r.encoded(strings.TrimSuffix(bridge, kind)) + kind + ".dump"
	}
	return strings.Join(parts, "/")
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
