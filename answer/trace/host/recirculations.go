package host

import "ovs-offline/internal/versions"

// Recirculations returns how often the datapath recirculates one packet before it drops it: at least and at most that
// often, by its release, which may not be recorded. bounded is false for the kernel's datapath.
func (h *Host) Recirculations() (least, most int, bounded bool) {
	// MAX_RECIRC_DEPTH in lib/dpif-netdev.c, and the releases that changed it.
	const oldest, since29, since33 = 5, 6, 8
	switch {
	case !h.Conntrack.Userspace:
		return 0, 0, false
	case h.version == "":
		return oldest, since33, true
	case versions.Compare(h.version, "2.9") < 0:
		return oldest, oldest, true
	case versions.Compare(h.version, "3.3") < 0:
		return since29, since29, true
	}
	return since33, since33, true
}
