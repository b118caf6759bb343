package appctl

import (
	"iter"
	"strings"
)

// CFMMonitor is a section of cfm/show (lib/cfm.c, cfm_print_details). A monitor
// without a fault has no such line (measured with OVS 3.1).
type CFMMonitor struct {
	Interface string
	Fault     bool
}

// CFMMonitors yields the monitors of cfm/show.
func CFMMonitors(text string) iter.Seq[CFMMonitor] {
	return each(text, func(name, body string) CFMMonitor {
		m := CFMMonitor{Interface: name}
		for line := range strings.Lines(body) {
			if label, value := field(line); label == "fault" {
				m.Fault = value != "" && value != "none" && value != "false"
			}
		}
		return m
	})
}
