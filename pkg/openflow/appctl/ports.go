package appctl

import (
	"iter"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// DatapathPort is a port of dpctl/show (lib/dpctl.c, show_dpif).
type DatapathPort struct {
	Datapath string // "ovs-system"
	Name     string
	Number   string
}

var (
	// datapath matches "system@ovs-system:".
	datapath = lazyregexp.New(`^\S+@(\S+):$`)
	// datapathPort matches "port 3: vnet0" and "port 1: br0 (internal)". A name may have blanks.
	datapathPort = lazyregexp.New(`^port (\d+): (.+?)(?: \([a-z0-9_-]+(?:: .*)?\))?$`)
)

// DatapathPorts yields the ports of dpctl/show.
func DatapathPorts(text string) iter.Seq[DatapathPort] {
	return ports(text, datapath, datapathPort, func(datapath string, port []string) DatapathPort {
		return DatapathPort{datapath, port[2], port[1]}
	})
}

// BridgePort is a port of dpif/show (ofproto/ofproto-dpif.c, dpif_show_backer).
type BridgePort struct {
	Bridge   string
	Name     string
	OpenFlow int
	Datapath string // port number, or "none" for a patch port
	Type     string // of the interface: system, internal, geneve, patch, ...
}

var (
	// bridge matches "  br0:".
	bridge = lazyregexp.New(`^(.+):$`)
	// bridgePort matches "    p1 1/2: (system)".
	bridgePort = lazyregexp.New(`^(?s:(.+?)) (\d{1,10})/(\d+|none): \(([^:)]*)`)
)

// portIndent is the space before a port of dpif/show.
const portIndent = "    "

// BridgePorts yields the ports of dpif/show. A name may have line breaks, in its first 4096 bytes:
// the rest of it has no indentation.
func BridgePorts(text string) iter.Seq[BridgePort] {
	const maxName = 4096
	return func(yield func(BridgePort) bool) {
		for found, body := range parts(text, bridge) {
			begun := "" // of a name
			for line := range strings.Lines(body) {
				line = strings.TrimSuffix(line, "\n")
				if begun != "" && len(begun) < maxName && !strings.HasPrefix(line, portIndent) {
					line = begun + "\n" + line
				}
				port := bridgePort.FindStringSubmatch(strings.TrimSpace(line))
				if begun = ""; port == nil {
					begun = line
					continue
				}
				number, _ := strconv.Atoi(port[2])
				if !yield(BridgePort{found[1], port[1], number, port[3], port[4]}) {
					return
				}
			}
		}
	}
}

// ports yields what read makes of the ports below each datapath or bridge.
func ports[T any](text string, of, port *lazyregexp.Regexp, read func(of string, port []string) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for found, body := range parts(text, of) {
			for line := range parts(body, port) {
				if !yield(read(found[1], line)) {
					return
				}
			}
		}
	}
}
