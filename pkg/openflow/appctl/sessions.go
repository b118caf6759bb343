package appctl

// BFDSessions reads bfd/show (lib/bfd.c, bfd_put_details): whether the session of
// each interface forwards, "true" or "false".
func BFDSessions(text string) map[string]string {
	states := map[string]string{}
	for found, body := range parts(text, section) {
		for label, value := range fields(body) {
			if label == "Forwarding" && (value == "true" || value == "false") {
				states[found[1]] = value
			}
		}
	}
	return states
}

// CFMMonitors reads cfm/show (lib/cfm.c, cfm_print_details): whether the monitor of
// each interface has a fault, "true" or "false". One without a fault has no such
// line (measured with OVS 3.1).
func CFMMonitors(text string) map[string]string {
	states := map[string]string{}
	for found, body := range parts(text, section) {
		states[found[1]] = "false"
		for label, value := range fields(body) {
			if label == "fault" && value != "" && value != "none" && value != "false" {
				states[found[1]] = "true"
			}
		}
	}
	return states
}
