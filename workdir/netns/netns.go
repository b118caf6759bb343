// Package netns has the network namespaces of a node as they were recorded: devices, addresses, routes, rules,
// neighbours, the rules of netfilter, and connections. It reads a workdir.
package netns

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"ovs-offline/internal/iproute"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
)

// Own is the name of the node's own network namespace, in which its daemons run.
const Own = ""

// Namespace is a network namespace of a node.
type Namespace struct {
	Name       string // of ip-netns(8); Own for the node's own
	Links      []iproute.Link
	Routes     []iproute.Route // of all tables and families
	Rules      []iproute.Rule  // of both families
	HasRules   [2]bool         // the rules of IPv4 were recorded, and those of IPv6
	Neighbours []iproute.Neighbour
	Sysctls    map[string]string // the settings below net. that decide about forwarding, by name

	// The paths of recorded outputs, each "" if it was not recorded: iptables-save, ip6tables-save,
	// nft list ruleset, ipset save, and conntrack -L -o extended.
	Filters, Filters6, Nftables, Sets, Conntrack string
	// Filtered reports that the rules of netfilter were recorded, even if there were none.
	Filtered bool
}

// maxOutput bounds the bytes that are read of one recorded output: some 500,000 routes.
const maxOutput = 64 << 20

// Read returns the recorded network namespaces of a node, its own one first. A node whose devices and routes
// were not recorded has none of its own, and a namespace without devices is none.
func Read(wd *workdir.Data) ([]Namespace, error) {
	names, err := wd.RecordedNamespaces()
	if err != nil {
		return nil, fmt.Errorf("the recorded network namespaces: %w", err)
	}
	var list []Namespace
	for _, name := range append([]string{Own}, names...) {
		read := reader{of: func(output string) string { return wd.NamespaceRecorded(name, output) }}
		if name == Own {
			read.of = ownOutput(wd)
		}
		namespace := read.namespace(name)
		if read.err != nil {
			return nil, fmt.Errorf("network namespace %q: %w", name, read.err)
		}
		if len(namespace.Links) > 0 && (name != Own || len(namespace.Routes) > 0) {
			list = append(list, namespace)
		}
	}
	return list, nil
}

// Recorded reports whether network namespaces of the node were recorded.
func Recorded(wd *workdir.Data) bool {
	names, err := wd.RecordedNamespaces()
	read := reader{of: ownOutput(wd)}
	own := read.path(workdir.RecordedLinks) != "" && read.path(workdir.RecordedKernelRoutes) != ""
	return err != nil || len(names) > 0 || own
}

// ownOutput returns the paths of the outputs of the node's own namespace: devices and routes are in recorded/.
func ownOutput(wd *workdir.Data) func(output string) string {
	return func(output string) string {
		if output == workdir.RecordedLinks || output == workdir.RecordedKernelRoutes {
			return wd.Recorded(output)
		}
		return wd.HostRecorded(output)
	}
}

// reader reads the outputs of one namespace, until one can't be read.
type reader struct {
	of  func(output string) string // the path of an output
	err error
}

func (r *reader) namespace(name string) Namespace {
	rules, rules6 := r.text(workdir.HostRules), r.text(workdir.NamespaceRules6)
	return Namespace{
		Name:       name,
		Links:      iproute.Links(r.text(workdir.RecordedLinks)),
		Routes:     iproute.AllRoutes(r.text(workdir.RecordedKernelRoutes)),
		Rules:      append(iproute.Rules(rules, false), iproute.Rules(rules6, true)...),
		HasRules:   [2]bool{rules != "", rules6 != ""},
		Neighbours: iproute.Neighbours(r.text(workdir.HostNeighbours)),
		Sysctls:    Sysctls(r.text(workdir.HostSysctl)),
		Filters:    r.path(workdir.NamespaceFilters),
		Filters6:   r.path(workdir.NamespaceFilters6),
		Nftables:   r.path(workdir.HostNftables),
		Sets:       r.path(workdir.NamespaceSets),
		Conntrack:  r.path(workdir.NamespaceConntrack),
		Filtered:   r.has(workdir.NamespaceFilters) || r.has(workdir.HostNftables),
	}
}

// has reports whether an output was recorded, even an empty one.
func (r *reader) has(output string) bool {
	_, err := os.Stat(r.of(output))
	return err == nil
}

// path returns the path of an output, "" if it was not recorded or is empty.
func (r *reader) path(output string) string {
	info, err := os.Stat(r.of(output))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && r.err == nil {
		r.err = err
	}
	if err != nil || info.Size() == 0 {
		return ""
	}
	return r.of(output)
}

// text returns the beginning of an output, "" if it was not recorded.
func (r *reader) text(output string) string {
	path := r.path(output)
	if path == "" {
		return ""
	}
	file, err := os.Open(path)
	if err == nil {
		defer func() { _ = file.Close() }()
		var raw []byte
		if raw, err = io.ReadAll(io.LimitReader(file, maxOutput)); err == nil {
			return string(raw)
		}
	}
	if r.err == nil {
		r.err = err
	}
	return ""
}

// decides matches the settings of a kernel that decide what becomes of a packet.
var decides = lazyregexp.New(`^net\.(ipv4\.(ip_forward|ip_nonlocal_bind|ip_default_ttl|fwmark_reflect|tcp_fwmark_accept|icmp_echo_ignore_all|icmp_echo_ignore_broadcasts|fib_multipath_hash_policy|ip_forward_use_pmtu|(?:tcp|udp|raw)_l3mdev_accept)` +
	`|ipv4\.conf\..+\.(forwarding|rp_filter|arp_ignore|arp_announce|arp_filter|arp_accept|proxy_arp|proxy_arp_pvlan|accept_local|accept_source_route|accept_redirects|send_redirects|secure_redirects|route_localnet|src_valid_mark|drop_gratuitous_arp|bc_forwarding|shared_media)` +
	`|ipv6\.(bindv6only|ip_nonlocal_bind|fwmark_reflect)|ipv6\.conf\..+\.(forwarding|disable_ipv6|proxy_ndp|hop_limit|accept_source_route)` +
	`|netfilter\.(nf_conntrack_tcp_loose|nf_conntrack_tcp_be_liberal|nf_conntrack_tcp_ignore_invalid_rst|nf_conntrack_helper|nf_conntrack_checksum|nf_conntrack_acct)` +
	`|bridge\.bridge-nf-[a-z0-9-]+)$`)

// Sysctls reads the settings in "sysctl -a" that decide what becomes of a packet.
func Sysctls(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); ok && len(name) < 200 && decides.MatchString(name) {
			settings[name] = strings.TrimSpace(value)
		}
	}
	return settings
}
