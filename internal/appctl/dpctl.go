package appctl

import (
	"iter"
	"regexp"
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
