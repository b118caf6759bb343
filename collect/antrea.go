package collect

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// antreaOutputs returns the commands whose output is in the support bundle of an agent of Antrea, by
// the names of the files. The agent runs ovs-ofctl in OpenFlow 1.5, and cuts off the first line.
func antreaOutputs() map[string]recording.Name {
	return map[string]recording.Name{
		"flows":    recording.Flows,
		"groups":   recording.Groups,
		"ovsports": workdir.RecordedShow,
		"address":  workdir.RecordedLinks,
		"route":    workdir.RecordedKernelRoutes,
	}
}

// antreaBridge is Antrea's bridge unless the agent's configuration names another.
const antreaBridge = "br-int"

// antreaTop matches the name that antctl and antrea-controller give the bundle of one agent:
// agent_NODE.tar.gz, COLLECTION_NODE.tar.gz.
var antreaTop = lazyregexp.New(`^[^_]+_(.+?)(?:\.tar\.gz|\.tgz|\.tar)?$`)

// agentInfo is the part of the file agentinfo that is used.
type agentInfo struct {
	NodeRef struct {
		Name string `json:"name"`
	} `json:"nodeRef"`
	OVSInfo struct {
		Version    string `json:"version"`
		BridgeName string `json:"bridgeName"`
	} `json:"ovsInfo"`
}

// isAntrea reports whether a file may be one of a bundle. Other files have such names too:
// sys/class/net/eth0/address.
func isAntrea(name string, start []byte) bool {
	sign := map[string]string{"agentinfo": "noderef", "ovsports": "): addr:", "address": " mtu ", "route": " dev "}[path.Base(name)]
	return sign != "" && bytes.Contains(bytes.ToLower(start), []byte(sign))
}

// identifyAntrea identifies the outputs in the folder of each agent's bundle, which holds the
// file agentinfo. Files elsewhere that only have such a name are dropped.
func (l *looseReader) identifyAntrea(files map[string]identity) error {
	agents, outputs := map[string]agentInfo{}, antreaOutputs()
	for name, id := range files {
		if id.kind == antreaFile && path.Base(name) == "agentinfo" {
			info, known, err := readAgentInfo(l.tree.Files[name])
			if err != nil {
				return err
			}
			if !known {
				l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s can't be read: the bridge of the outputs beside it is taken to be %s", partName(l.source.Name, name), antreaBridge))
			}
			agents[path.Dir(name)] = info
		}
	}
	for name, id := range files {
		agent, inBundle := agents[path.Dir(name)]
		command := outputs[path.Base(name)]
		switch {
		case inBundle && command != "":
			files[name] = agent.output(name, command)
		case id.kind == antreaFile:
			delete(files, name)
		}
	}
	for folder, agent := range agents {
		l.hostOfTop[folder] = agent.host(folder)
		if node := l.node(agent.host(folder)); node.OVSVersion == "" {
			node.OVSVersion = agent.OVSInfo.Version
		}
	}
	l.agents = len(agents)
	return nil
}

// output returns the identity of an output in the agent's folder.
func (a agentInfo) output(name string, command recording.Name) identity {
	id := identity{kind: recordedFile, command: command, node: a.host(path.Dir(name))}
	known, _ := recording.Find(command)
	if known.Dump != "" {
		id.kind, id.openflow, id.bare = dumpFile, openflow.OpenFlow15, true
	}
	if known.Scope == recording.OfBridge {
		id.bridge = cmp.Or(a.OVSInfo.BridgeName, antreaBridge)
	}
	return id
}

// host returns the name of the agent's node: agentinfo has it, or else the name of the bundle.
func (a agentInfo) host(folder string) string {
	base := path.Base(folder)
	if match := antreaTop.FindStringSubmatch(base); match != nil {
		base = match[1]
	}
	return cmp.Or(a.NodeRef.Name, strings.Trim(base, "./"))
}

// readAgentInfo reads the file agentinfo. known is false for a damaged file, and for one that is too
// long. Agents write the keys in lower case, antctl writes them as the API does.
func readAgentInfo(file archive.File) (info agentInfo, known bool, err error) {
	const largest = 1 << 20 // an agent's has 5 KiB
	if file.Size > largest {
		return info, false, nil
	}
	raw, err := os.ReadFile(file.Spooled)
	if err != nil {
		return info, false, err
	}
	if yaml.Unmarshal(raw, &info) != nil {
		return agentInfo{}, false, nil
	}
	return info, true, nil
}
