package replica

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// ovs-ofctl show prints 15 characters of the name of a port. The patch ports that ovn-controller makes for several provider networks
// are then all called patch-br-int-to. Which number is whose, the VLANs tell: those that flows push before an output to a number, and
// those in which the bridge at the other end learned addresses.

// alike are the numbers of ports whose names were printed alike, and the names that they may have.
type alike struct {
	numbers []int
	names   []string
}

// tell gives the numbers of a bridge whose name was printed alike to the patch ports that send their VLANs. It returns the numbers that
// remain.
func (o *outliner) tell(ctx context.Context, ports bridgePorts, printed string, numbers []int) ([]int, error) {
	cut := alike{numbers: numbers}
	for name, iface := range ports.byName {
		if strings.HasPrefix(name, printed) && !iface.Has("ofport") {
			cut.names = append(cut.names, name)
		}
	}
	if len(cut.names) != len(numbers) {
		return numbers, nil
	}
	slices.Sort(cut.names)
	pushed, err := o.pushed(ctx, ports.bridge.Name)
	if err != nil {
		return nil, err
	}
	learned := map[string]map[string]bool{}
	for _, name := range cut.names {
		if learned[name], err = o.learnedAtPeer(ports.byName[name]); err != nil {
			return nil, err
		}
	}
	for number, found := range cut.match(pushed, learned) {
		o.number(ports, found.name, number)
		o.told = append(o.told, fmt.Sprintf("%s: port %d, whose name ovs-ofctl show cut, is taken as %s: %s", ports.bridge.Name, number, found.name, found.why))
	}
	return slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return ports.taken[n] }), nil
}

// told is the name of a port and why it is its name.
type told struct{ name, why string }

// match returns the names of numbers by the VLANs that flows push before an output to each number, and those learned at the peer of
// each name. A VLAN tells if one number and one name has it. Where all but one are told, the last is as well. It returns nothing if
// VLANs contradict each other.
func (a alike) match(pushed map[int]map[string]bool, learned map[string]map[string]bool) map[int]told {
	found, taken := map[int]told{}, map[string]bool{}
	for _, number := range a.numbers {
		for vlan := range pushed[number] {
			numbers := slices.DeleteFunc(slices.Clone(a.numbers), func(n int) bool { return !pushed[n][vlan] })
			names := slices.DeleteFunc(slices.Clone(a.names), func(name string) bool { return !learned[name][vlan] })
			if len(numbers) != 1 || len(names) != 1 {
				continue
			}
			if other, known := found[number]; known && other.name != names[0] || !known && taken[names[0]] {
				return nil
			}
			taken[names[0]] = true
			found[number] = told{names[0], fmt.Sprintf("only flows to it push VLAN %s, in which addresses were learned at the peer of this port alone", vlan)}
		}
	}
	if len(found) != len(a.numbers)-1 || len(found) == 0 {
		return found
	}
	number := a.numbers[slices.IndexFunc(a.numbers, func(n int) bool { return found[n].name == "" })]
	name := a.names[slices.IndexFunc(a.names, func(name string) bool { return !taken[name] })]
	found[number] = told{name, "it is the one that remains"}
	return found
}

// pushedVLAN matches actions that push a VLAN and send the packet out of a port.
var pushedVLAN = lazyregexp.New(`(?:set_field:(\d+)->vlan_vid|mod_vlan_vid:(\d+)),output:(\d+)\b`)

// pushed returns the VLANs that the flows of a bridge push right before an output, by the number of the port.
func (o *outliner) pushed(ctx context.Context, bridge string) (map[int]map[string]bool, error) {
	file, ok, err := workdir.OpenCollected(o.wd.DumpFile(bridge, workdir.Flows))
	if !ok {
		return nil, err
	}
	defer file.Close()
	found := map[int]map[string]bool{}
	_, err = lines.Read(interrupt.Reader(ctx, file), func(line []byte) error {
		for _, match := range pushedVLAN.FindAllStringSubmatch(string(line), -1) {
			vlan, _ := strconv.Atoi(match[1] + match[2])
			number, _ := strconv.Atoi(match[3])
			if found[number] == nil {
				found[number] = map[string]bool{}
			}
			found[number][fmt.Sprint(vlan&0xfff)] = true // without OFPVID_PRESENT
		}
		return nil
	})
	return found, err
}

// peerOption matches the peer in the options of a patch port.
var peerOption = lazyregexp.New(`[{ ]peer=("[^"]*"|[^,}]+)`)

// learnedAtPeer returns the VLANs, but for 0, in which the bridge at the other end of a patch port learned addresses.
func (o *outliner) learnedAtPeer(patch *ovsdb.Outline) (map[string]bool, error) {
	match := peerOption.FindStringSubmatch(patch.Text("options"))
	if match == nil {
		return nil, nil
	}
	peer := strings.Trim(match[1], `"`)
	for _, bridge := range o.root.Below("Bridge") {
		ports := portsOf(bridge)
		if ports.byName[peer] == nil {
			continue
		}
		show, err := o.show(bridge.Name)
		if err != nil {
			return nil, err
		}
		text, _, err := workdir.CollectedText(o.wd.BridgeRecorded(bridge.Name, workdir.RecordedFDB))
		if err != nil {
			return nil, err
		}
		vlans := map[string]bool{}
		for _, port := range show.Ports {
			if name, known := ports.whole(port.Name); !known || name != peer {
				continue
			}
			for mac := range appctl.LearnedMACs(text) {
				if mac.VLAN != "0" && mac.Port == strconv.Itoa(port.Number) {
					vlans[mac.VLAN] = true
				}
			}
		}
		return vlans, nil
	}
	return nil, nil
}
