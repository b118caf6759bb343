package appctl

import "iter"

// Session is a section of bfd/show (lib/bfd.c, bfd_put_details) or cfm/show
// (lib/cfm.c, cfm_print_details).
type Session struct {
	Interface string
	State     string // "true" or "false": BFD forwards, or CFM has a fault; "" if the text does not have it
}

// BFDSessions yields the sessions of bfd/show.
func BFDSessions(text string) iter.Seq[Session] {
	return each(text, func(name, body string) Session {
		s := Session{Interface: name}
		for label, value := range fields(body) {
			if label == "Forwarding" && (value == "true" || value == "false") {
				s.State = value
			}
		}
		return s
	})
}

// CFMMonitors yields the monitors of cfm/show. A monitor without a fault has no
// such line (measured with OVS 3.1).
func CFMMonitors(text string) iter.Seq[Session] {
	return each(text, func(name, body string) Session {
		m := Session{Interface: name, State: "false"}
		for label, value := range fields(body) {
			if label == "fault" && value != "" && value != "none" && value != "false" {
				m.State = "true"
			}
		}
		return m
	})
}
