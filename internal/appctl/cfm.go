package appctl

import (
	"iter"
	"strings"
)

// CFMFaults yields the interfaces of cfm/show and whether each has a fault
// (lib/cfm.c, cfm_print_details). A monitor without a fault has no such line
// (measured with OVS 3.1).
func CFMFaults(text string) iter.Seq2[string, bool] {
	return func(yield func(name string, fault bool) bool) {
		for name, body := range sections(text) {
			fault := false
			for line := range strings.Lines(body) {
				if label, value := field(line); label == "fault" {
					fault = value != "" && value != "none" && value != "false"
				}
			}
			if !yield(name, fault) {
				return
			}
		}
	}
}
