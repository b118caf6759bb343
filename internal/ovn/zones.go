package ovn

import (
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/lines"
)

// Zones names the owners of conntrack zones: the names of ports, and the UUIDs or names of datapaths with
// "_dnat" or "_snat".
type Zones map[uint16]string

// AddIDs adds the zones that ovn-controller keeps in the external_ids of the integration bridge.
func (z Zones) AddIDs(ids map[string]string) {
	for key, value := range ids {
		if owner, ok := strings.CutPrefix(key, "ct-zone-"); ok {
			z.add(owner, value)
		}
	}
}

// AddPrinted adds the zones that ovn-controller printed (ct-zone-list): a line for each, with the name
// and the number.
func (z Zones) AddPrinted(r io.Reader) error {
	_, err := lines.Read(r, func(line []byte) error {
		name, zone, _ := strings.Cut(string(line), " ")
		z.add(name, zone)
		return nil
	})
	return err
}

func (z Zones) add(owner, number string) {
	if zone, err := strconv.ParseUint(number, 10, 16); err == nil {
		z[uint16(zone)] = owner
	}
}
