package tables

import "regexp"

// newer lists what ovs-ofctl does not know before a certain version of Open vSwitch, by
// its error and the text of the entry. The sources are Open vSwitch's NEWS and, for the
// registers, include/openvswitch/meta-flow.h.
var newer = []struct {
	version        string
	message, entry *regexp.Regexp
}{
	{"3.7", regexp.MustCompile(`(?i)(?:\b|_)(?:reg(?:1[6-9]|2[0-9]|3[01])|xreg(?:[89]|1[0-5])|xxreg[4-7])\b`), anyText},
	{"3.4", regexp.MustCompile(`invalid numeric format`), regexp.MustCompile(`obs_(?:domain|point)_id=[A-Za-z]`)},
	{"2.17", regexp.MustCompile(`Encap hdr not supported`), regexp.MustCompile(`encap\(mpls`)},
	{"2.14", regexp.MustCompile(`\b(?:delete_field|tun_gtpu_flags|tun_gtpu_msgtype)\b`), anyText},
	{"2.12", regexp.MustCompile(`\b(?:check_pkt_larger|nd_reserved|nd_options_type)\b`), anyText},
}

var anyText = regexp.MustCompile(``)

// knownFrom returns the first version of Open vSwitch that can express an entry that
// ovs-ofctl refused with a message, "" if that is not known.
func knownFrom(message, entry string) string {
	for _, known := range newer {
		if known.message.MatchString(message) && known.entry.MatchString(entry) {
			return known.version
		}
	}
	return ""
}
