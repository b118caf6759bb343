package flows

import "ovs-offline/replica/set"

// Sources returns the nodes of a set that have a switch. The node of a workdir alone has no
// name.
func Sources(nodes *set.Set) (sources []Source, err error) {
	for _, node := range set.WithSwitch(nodes.Nodes()) {
		wd, err := node.Workdir()
		if err != nil {
			return nil, err
		}
		source := Source{Name: node.Name, Dir: wd}
		if nodes.Alone() {
			source.Name = ""
		}
		sources = append(sources, source)
	}
	return sources, nil
}
