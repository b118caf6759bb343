package workdir

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// namespaces is the folder in recorded/ with a folder for each network namespace of a node.
const namespaces = "namespaces"

// Names of outputs of one network namespace, beside RecordedLinks (ip.address), RecordedKernelRoutes
// (ip.route), HostRules (ip.rule), HostNeighbours (ip.neigh), HostNftables (nft.ruleset) and HostSysctl.
const (
	NamespaceRules6    = "ip.rule.6"
	NamespaceFilters   = "iptables-save"
	NamespaceFilters6  = "ip6tables-save"
	NamespaceSets      = "ipset.save"
	NamespaceConntrack = "conntrack"
)

// NamespaceRecorded returns the path of an output of one network namespace.
func (d *Data) NamespaceRecorded(namespace, name string) string {
	return d.join("recorded", namespaces, EncodeName(namespace), name)
}

// RecordedNamespaces returns the names of the network namespaces with recorded outputs, in their order. The
// node's own namespace, whose outputs are in recorded/ and host/, is not among them.
func (d *Data) RecordedNamespaces() (names []string, err error) {
	entries, err := os.ReadDir(d.join("recorded", namespaces))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if name, ok := DecodeName(entry.Name()); ok && entry.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}
