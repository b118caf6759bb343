package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// maxName is the longest name of a network device (IFNAMSIZ without the end of the string).
const maxName = 15

// names gives the interfaces of a node their names.
type names struct {
	node   *node
	s      *Southbound
	used   map[string]bool
	made   []string // names that stand for ones that are not known
	agents int      // ports that neutron named
	mports []string // management ports of OVN-Kubernetes
	meta   int      // ports for metadata
}

// newNames returns the names for a node with these bridges beside the integration bridge.
func newNames(node *node, southbound *Southbound, bridges []string) *names {
	used := map[string]bool{integration: true}
	for _, name := range bridges {
		used[name] = true
	}
	return &names{node: node, s: southbound, used: used}
}

// neutronID matches the UUID that is the name of a port of neutron.
var neutronID = lazyregexp.New(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// interfaceOf returns the name and the type of the interface of a logical port. Neutron and
// OVN-Kubernetes derive some names from the names of logical ports.
func (m *names) interfaceOf(binding ovn.Binding) (name, kind string) {
	neutron := neutronID.MatchString(binding.Port)
	switch {
	case binding.Type == "localport" && neutron: // get_veth_name() of neutron's metadata agent
		if network := strings.TrimPrefix(m.s.datapaths[binding.Datapath].Name, "neutron-"); neutronID.MatchString(network) {
			m.meta++
			return m.uniqueName("tap"+network[:10]+"0", binding.Port), ""
		}
	case neutron: // nova's name of a tap device, or of a vhost-user socket
		m.agents++
		prefix := "tap"
		if m.node.Config["datapath-type"] == "netdev" {
			prefix = "vhu"
		}
		return m.uniqueName(prefix+binding.Port[:11], binding.Port), ""
	case binding.Port == managementPort(m.node.Chassis): // types.K8sMgmtIntfName of OVN-Kubernetes
		m.mports = append(m.mports, binding.Port)
		return m.uniqueName("ovn-k8s-mp0", binding.Port), "internal"
	}
	name = m.uniqueName(binding.Port, binding.Port)
	m.made = append(m.made, name)
	return name, ""
}

// unplain matches what a placeholder does not take from the name of a logical port.
var unplain = lazyregexp.New(`[^A-Za-z0-9_.-]+`)

// uniqueName returns a name as it is if a network device can have it and none has it yet. Else
// it is made of the beginning of the name and of a hash of the logical port.
func (m *names) uniqueName(name, port string) string {
	plain := unplain.ReplaceAllString(name, "_")
	if plain != name || len(plain) > maxName || plain == "" || m.used[plain] || strings.HasPrefix(plain, "-") || strings.HasPrefix(plain, ".") {
		sum := sha256.Sum256([]byte(port))
		const digits = 6
		plain = strings.TrimLeft(plain, "-.")
		plain = plain[:min(len(plain), maxName-digits-1)] + "~" + hex.EncodeToString(sum[:digits/2])
	}
	m.used[plain] = true
	return plain
}

// assume lists where the names of interfaces come from.
func (m *names) assume() {
	if m.agents > 0 {
		m.node.assume("names of interfaces: the %d ports of instances are called as nova does, with the beginning of the port's UUID", m.agents)
	}
	if m.meta > 0 {
		m.node.assume("neutron's metadata agent has a port on each of the %d networks of local instances, called as it does", m.meta)
	}
	if len(m.mports) > 0 {
		m.node.assume("the management port %s has the interface ovn-k8s-mp0", strings.Join(m.mports, ", "))
	}
	if len(m.made) > 0 {
		slices.Sort(m.made)
		m.node.assume("names of interfaces: the names for %d logical ports can't be known, so they have the name of the port, cut to %d characters: %s", len(m.made), maxName, phrase.FirstNames(m.made))
	}
}

// uplink returns the name of the physical port of a provider bridge. OVN-Kubernetes calls
// a bridge that it makes "br" and the name of the device; all others are unknown.
func (m *names) uplink(bridge string) string {
	device, ok := strings.CutPrefix(bridge, "br")
	if !ok || !madeBridge.MatchString(bridge) || !m.s.isKubernetes() {
		device = "nic-" + bridge
	}
	return m.uniqueName(device, "the physical port of "+bridge)
}

// madeBridge matches the name of a bridge that OVN-Kubernetes made for a device with one of
// the usual names.
var madeBridge = lazyregexp.New(`^br(?:eth|en|bond|wl|ib)[a-z0-9]*$`)
