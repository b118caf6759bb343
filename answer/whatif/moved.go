package whatif

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
)

// A node announces the MAC addresses of ports that come to it, such as a gateway's, so that switches
// learn where they are now. No packet is sent here: bridges forget these addresses
// instead, and flood what is sent to them.

// located returns the chassis of each logical port of an SB database, and its addresses.
func located(sb *file.Index) (map[string]location, error) {
	ports := map[string]location{}
	return ports, ovn.EachBinding(sb, func(b ovn.Binding) {
		at := location{chassis: b.Chassis}
		for _, addresses := range b.Addresses {
			if words := strings.Fields(addresses); len(words) > 0 {
				at.macs = append(at.macs, strings.ToLower(words[0]))
			}
		}
		ports[b.Port] = at
	})
}

// location is where a logical port is bound.
type location struct {
	chassis string
	macs    []string
}

// moved returns the MAC addresses of the ports that are not where they were.
func moved(before, now map[string]location) []string {
	var macs []string
	for name, was := range before {
		if now[name].chassis != was.chassis {
			macs = append(macs, was.macs...)
			macs = append(macs, now[name].macs...)
		}
	}
	return macs
}

// forget copies the output of fdb/show without the entries of some MAC addresses.
func forget(from, to string, macs []string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) < 3 || !slices.Contains(macs, strings.ToLower(words[2])) {
			b.WriteString(line)
		}
	}
	if err := write(to, b.String()); err != nil {
		return fmt.Errorf("learned MAC addresses: %w", err)
	}
	return nil
}
