package flows

import "ovs-offline/snapshot"

// Sources returns the nodes of a set that have a switch. The node of a workdir alone has no
// name.
func Sources(nodes *snapshot.Snapshot) (sources []Source, err error) {
	for _, node := range snapshot.WithSwitch(nodes.Nodes()) {
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
