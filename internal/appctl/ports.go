package appctl

import (
	"iter"
	"regexp"
	"strconv"
)

// DatapathPort is a port of dpctl/show (lib/dpctl.c, show_dpif).
type DatapathPort struct {
	Datapath string // "ovs-system"
	Name     string
	Number   string
}

var (
	// datapath matches "system@ovs-system:".
	datapath     = regexp.MustCompile(`^\S+@(\S+):$`)
	datapathPort = regexp.MustCompile(`^port (\d+): (\S+)`)
)

// DatapathPorts yields the ports of dpctl/show.
func DatapathPorts(text string) iter.Seq[DatapathPort] {
	return func(yield func(DatapathPort) bool) {
		for found, body := range parts(text, datapath) {
			for port := range parts(body, datapathPort) {
				if !yield(DatapathPort{found[1], port[2], port[1]}) {
					return
				}
			}
		}
	}
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
	bridge = regexp.MustCompile(`^(.+):$`)
	// bridgePort matches "    p1 1/2: (system)".
	bridgePort = regexp.MustCompile(`^(\S+) (\d+)/(\d+|none): \(([^:)]*)`)
)

// BridgePorts yields the ports of dpif/show.
func BridgePorts(text string) iter.Seq[BridgePort] {
	return func(yield func(BridgePort) bool) {
		for found, body := range parts(text, bridge) {
			for port := range parts(body, bridgePort) {
				number, err := strconv.Atoi(port[2])
				if err == nil && !yield(BridgePort{found[1], port[1], number, port[3], port[4]}) {
					return
				}
			}
		}
	}
}
