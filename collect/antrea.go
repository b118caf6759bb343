package collect

import (
	"fmt"
	"os"
	"path"
	"regexp"

	"sigs.k8s.io/yaml"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// agentInfo is the part of an Antrea agent's description of itself that is used.
type agentInfo struct {
	Node struct {
		Name string `json:"name"`
	} `json:"nodeRef"` // or "noderef", which encoding/json takes too
	OVS struct {
		Version string `json:"version"`
		Bridge  string `json:"bridgeName"`
	} `json:"ovsInfo"`
}

// antreaInfo matches the beginning of an agent's description of itself: the file agentinfo of its
// support bundle.
var antreaInfo = regexp.MustCompile(`(?im)^ovsinfo:`)

// antreaOutputs are the files of an Antrea agent's support bundle (docs/support-bundle-guide.md of
// Antrea), and the commands that print the same. The agent cuts off the headers of replies, which
// are of OpenFlow 1.5.
func antreaOutputs() map[string]identity {
	dump := func(command recording.Name) identity {
		return identity{kind: dumpFile, command: command, openflow: openflow.OpenFlow15}
	}
	recorded := func(command recording.Name) identity { return identity{kind: recordedFile, command: command} }
	return map[string]identity{
		"flows": dump(recording.Flows), "groups": dump(recording.Groups), "ovsports": recorded(workdir.RecordedShow),
		"address": recorded(workdir.RecordedLinks), "route": recorded(workdir.RecordedKernelRoutes),
	}
}

// addAgents takes the files of the support bundles of Antrea's agents for outputs of their nodes
// and bridges.
func (l *looseReader) addAgents(names []string) error {
	for _, name := range names {
		if l.files[name].kind == agentFile {
			if err := l.addAgent(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// addAgent takes the files beside an agent's description of itself.
func (l *looseReader) addAgent(name string) error {
	const largest = 1 << 20
	file := l.tree.Files[name]
	if file.Size > largest {
		l.found.Lost = append(l.found.Lost, partName(l.source.Name, name)+" is longer than 1 MiB: whose outputs are beside it is not known")
		return nil
	}
	raw, err := os.ReadFile(file.Spooled)
	if err != nil {
		return err
	}
	var info agentInfo
	if err := yaml.Unmarshal(raw, &info); err != nil {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: %v", partName(l.source.Name, name), err))
		return nil
	}
	for base, id := range antreaOutputs() {
		file := path.Join(path.Dir(name), base)
		if _, known := l.files[file]; known {
			id.node, id.bridge = info.Node.Name, info.OVS.Bridge
			l.files[file] = id
		}
	}
	node := l.node(info.Node.Name)
	node.OVSVersion = info.OVS.Version
	return nil
}
