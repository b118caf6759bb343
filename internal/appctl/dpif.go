package appctl

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// BridgePort is a port of dpif/show (ofproto/ofproto-dpif.c, dpif_show_backer).
type BridgePort struct {
	Bridge   string
	Name     string
	OpenFlow int
	Datapath string // port number, or "none" for a patch port
	Type     string // of the interface: system, internal, geneve, patch, ...
}

// bridgePort matches "    p1 1/2: (system)".
var bridgePort = regexp.MustCompile(`^    (\S+) (\d+)/(\d+|none): \(([^:)]*)`)

// BridgePorts yields the ports of dpif/show.
func BridgePorts(text string) iter.Seq[BridgePort] {
	return func(yield func(BridgePort) bool) {
		bridge := ""
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if found := bridgePort.FindStringSubmatch(line); found != nil {
				number, err := strconv.Atoi(found[2])
				if err == nil && !yield(BridgePort{bridge, found[1], number, found[3], found[4]}) {
					return
				}
			} else if name, ok := strings.CutSuffix(line, ":"); ok && strings.HasPrefix(line, "  ") {
				bridge = strings.TrimSpace(name)
			}
		}
	}
}
