package tables

import "ovs-offline/internal/lazyregexp"

// newer lists what ovs-ofctl does not know before a certain version of Open vSwitch, by
// its error and the text of the entry. The sources are Open vSwitch's NEWS and, for the
// registers, include/openvswitch/meta-flow.h.
var newer = []struct {
	version        string
	message, entry *lazyregexp.Regexp
}{
	{"3.7", lazyregexp.New(`(?i)(?:\b|_)(?:reg(?:1[6-9]|2[0-9]|3[01])|xreg(?:[89]|1[0-5])|xxreg[4-7])\b`), anyText},
	{"3.4", lazyregexp.New(`invalid numeric format`), lazyregexp.New(`obs_(?:domain|point)_id=[A-Za-z]`)},
	{"2.17", lazyregexp.New(`Encap hdr not supported`), lazyregexp.New(`encap\(mpls`)},
	{"2.14", lazyregexp.New(`\b(?:delete_field|tun_gtpu_flags|tun_gtpu_msgtype)\b`), anyText},
	{"2.12", lazyregexp.New(`\b(?:check_pkt_larger|nd_reserved|nd_options_type)\b`), anyText},
}

var anyText = lazyregexp.New(``)

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
