package appctl

import (
	"iter"
	"regexp"
	"strings"
)

// DatapathPort is a port of dpctl/show (lib/dpctl.c, show_dpif).
type DatapathPort struct {
	Datapath string // "ovs-system" of "system@ovs-system:"
	Name     string
	Number   string
}

var datapathPort = regexp.MustCompile(`^\s+port (\d+): (\S+)`)

// DatapathPorts yields the ports of dpctl/show.
func DatapathPorts(text string) iter.Seq[DatapathPort] {
	return func(yield func(DatapathPort) bool) {
		datapath := ""
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if found := datapathPort.FindStringSubmatch(line); found != nil {
				if !yield(DatapathPort{datapath, found[2], found[1]}) {
					return
				}
			} else if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
				datapath = name[strings.IndexByte(name, '@')+1:]
			}
		}
	}
}
