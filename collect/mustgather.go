package collect

import (
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir/recording"
)

var (
	// resourceFile matches the YAML files of a must-gather that name nodes: those of
	// the pods of OVN-Kubernetes, and of the nodes.
	resourceFile = lazyregexp.New(`(?:^|/)(?:(?:openshift-)?ovn-kubernetes/pods/[^/]+/[^/]+|cluster-scoped-resources/core/nodes/[^/]+)\.yaml$`)
	// podOfDatabase matches the name of a database that was read in a pod of one node:
	// POD_conf.db, or POD_nbdb and POD_sbdb of OVN interconnect.
	podOfDatabase = lazyregexp.New(`^((?:ovnkube-node|ovs-node|ovnkube-ovs)-[^_]+)_(conf\.db|[ns]bdb)(?:\.gz)?$`)
	// podOfLog matches the path of a log that was read in a container of a pod.
	podOfLog  = lazyregexp.New(`(?:^|/)ovnk_extras_store/([^/]+)/[^/]+/[^/]+$`)
	timestamp = lazyregexp.New(`^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+ \+0000 UTC`)
)

// resource is the part of a pod or a node that is used.
type resource struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		NodeName   string `json:"nodeName"`
		Containers []struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		} `json:"containers"`
	} `json:"spec"`
}

// chassisAnnotation is where OVN-Kubernetes writes the system-id of a node.
const chassisAnnotation = "k8s.ovn.org/node-chassis-id"

// mustGatherTop matches the folder of a must-gather with data of its network.
var mustGatherTop = lazyregexp.New(`^(?:(.*?)/)?network_logs/`)

// byMustGather yields the files of each must-gather if there are several, by its
// folder, and the other files for the folder "".
func byMustGather(files map[string]identity) iter.Seq2[string, map[string]identity] {
	tops := map[string]bool{}
	for name := range files {
		if match := mustGatherTop.FindStringSubmatch(name); match != nil {
			tops[match[1]] = true
		}
	}
	groups := map[string]map[string]identity{"": files}
	if len(tops) > 1 {
		groups[""] = map[string]identity{}
		for name, id := range files {
			top := path.Dir(name)
			for top != "." && !tops[top] {
				top = path.Dir(top)
			}
			top = strings.TrimPrefix(top, ".")
			if groups[top] == nil {
				groups[top] = map[string]identity{}
			}
			groups[top][name] = id
		}
	}
	return func(yield func(string, map[string]identity) bool) {
		for _, top := range slices.Sorted(maps.Keys(groups)) {
			if len(groups[top]) > 0 && !yield(top, groups[top]) {
				return
			}
		}
	}
}

// addResource takes the node and the image of a pod, or the system-id of a node. A file
// that cannot be read names nothing.
func (l *looseReader) addResource(name string, _ identity) error {
	const largest = 1 << 20 // a pod of OVN-Kubernetes has 50 KiB
	file := l.tree.Files[name]
	if file.Size > largest {
		return nil
	}
	raw, err := os.ReadFile(file.Spooled)
	if err != nil {
		return err
	}
	l.addObject(raw)
	return nil
}

// addObject takes a resource of the API.
func (l *looseReader) addObject(raw []byte) {
	var resource resource
	if yaml.Unmarshal(raw, &resource) != nil {
		return
	}
	switch {
	case resource.Kind == "Pod":
		l.nodeOfPod[resource.Metadata.Name] = resource.Spec.NodeName
		for _, container := range resource.Spec.Containers {
			if strings.HasPrefix(container.Name, "ovn") { // others run the image of a proxy
				l.imageOfNode[resource.Spec.NodeName] = container.Image
			}
		}
	case resource.Kind == "Node" && resource.Metadata.Annotations[chassisAnnotation] != "":
		l.nodeOfSystem[resource.Metadata.Annotations[chassisAnnotation]] = resource.Metadata.Name
	}
}

// hostOf returns the node whose pod a database was read in: the pod's name if the
// must-gather lacks the pod, "" for a database that was read elsewhere.
func (l *looseReader) hostOf(name string) string {
	match := podOfDatabase.FindStringSubmatch(path.Base(name))
	if match == nil {
		return ""
	}
	if host := l.nodeOfPod[match[1]]; host != "" {
		return host
	}
	return match[1]
}

// notePod notes the node of the pod in which a database was read, if the database names it
// and no resource of the must-gather does.
func (l *looseReader) notePod(name, host string) {
	if match := podOfDatabase.FindStringSubmatch(path.Base(name)); match != nil && l.nodeOfPod[match[1]] == "" {
		l.nodeOfPod[match[1]] = host
	}
}

// readTimestamp returns when a must-gather was made: its file timestamp has the
// times of its beginning and end.
func readTimestamp(file archive.File) recording.Moment {
	raw, err := os.ReadFile(file.Spooled)
	if err != nil || file.Size > 1024 {
		return recording.Moment{}
	}
	return lastTime(string(raw))
}

// lastTime returns the last time in a text.
func lastTime(text string) (moment recording.Moment) {
	for line := range strings.Lines(text) {
		found := strings.TrimSuffix(timestamp.FindString(line), " +0000 UTC")
		if at, err := time.Parse("2006-01-02 15:04:05.999999999", found); err == nil {
			moment.At = at
		}
	}
	return moment
}
