package rule

import (
	"slices"
	"strings"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// Data is something that rules read, and that may not have been collected.
type Data struct {
	Name string // for people: "database of Open vSwitch"
	has  func(n *Node) (bool, error)
}

// OVS is the database of Open vSwitch, as a file or printed.
func OVS() Data {
	return Data{"database of Open vSwitch", func(n *Node) (bool, error) { return n.OVS != nil, nil }}
}

// NB is the OVN NB database, as a file or printed.
func NB() Data {
	return Data{"OVN NB database", func(n *Node) (bool, error) { return n.Deployment.NB != nil, nil }}
}

// SB is the OVN SB database, as a file or printed.
func SB() Data {
	return Data{"OVN SB database", func(n *Node) (bool, error) { return n.Deployment.SB != nil, nil }}
}

// Output is what a command of a whole node printed.
func Output(name recording.Name) Data {
	return Data{titleOf(name), func(n *Node) (bool, error) { return collected(n.Dir.Recorded(string(name))) }}
}

// BridgeOutput is what a command printed for a bridge.
func BridgeOutput(name recording.Name) Data {
	return Data{titleOf(name), func(n *Node) (bool, error) {
		bridges, err := n.RecordedBridges()
		for _, bridge := range bridges {
			if ok, err := collected(n.Dir.BridgeRecorded(bridge, string(name))); ok || err != nil {
				return ok, err
			}
		}
		return false, err
	}}
}

// HostOutput is what tells about the machine. title names it for people.
func HostOutput(name, title string) Data {
	return Data{title, func(n *Node) (bool, error) { return collected(n.Dir.HostRecorded(name)) }}
}

// Dumps are the OpenFlow flows of bridges.
func Dumps() Data {
	return Data{"dump of OpenFlow flows", func(n *Node) (bool, error) {
		bridges, err := n.Dir.DumpedBridges(workdir.Flows)
		return len(bridges) > 0, err
	}}
}

// Logs are the logs of daemons and of the machine.
func Logs() Data {
	return Data{"log", func(n *Node) (bool, error) {
		files, err := n.Dir.HostLogs()
		return len(files) > 0, err
	}}
}

// Either is one of several.
func Either(all ...Data) Data {
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return Data{strings.Join(names, " or "), func(n *Node) (bool, error) {
		for _, one := range all {
			if ok, err := one.has(n); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}}
}

// titleOf returns a command as people know it.
func titleOf(name recording.Name) string {
	if command, ok := recording.Find(name); ok {
		return "output of " + command.Line
	}
	return "output of " + string(name)
}

// collected reports whether a file was collected and holds something.
func collected(path string) (bool, error) {
	file, ok, err := workdir.OpenCollected(path)
	if !ok {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	return err == nil && info.Size() > 0, err
}

// Lacks returns what a rule needs and a case does not have, nil if the rule could look at something.
func (r *Rule) Lacks(c *Case) (lacking []Data, err error) {
	lacking = r.Needs
	for _, d := range c.Deployments {
		nodes := [][]*Node{d.Nodes}
		if r.Node != nil { // all of it on one node
			nodes = nil
			for _, n := range d.Nodes {
				nodes = append(nodes, []*Node{n})
			}
		}
		for _, among := range nodes {
			missing, err := r.lacks(among)
			if err != nil || len(missing) == 0 {
				return nil, err
			}
			if len(missing) < len(lacking) {
				lacking = missing
			}
		}
	}
	return lacking, nil
}

// lacks returns what a rule needs and none of some nodes has.
func (r *Rule) lacks(nodes []*Node) (missing []Data, err error) {
	for _, data := range r.Needs {
		has := slices.ContainsFunc(nodes, func(n *Node) bool {
			ok, failed := data.has(n)
			if failed != nil {
				err = failed
			}
			return ok
		})
		if !has {
			missing = append(missing, data)
		}
	}
	return missing, err
}
