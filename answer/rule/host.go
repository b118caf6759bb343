package rule

import (
	"strings"
	"time"

	"ovs-offline/workdir"
)

// HostOutput returns what a command printed about the machine, "" where that was not recorded.
func (n *Node) HostOutput(name string) (string, error) {
	text, _, err := n.Dir.CollectedText(n.Dir.HostRecorded(name))
	return text, err
}

// Recorded returns when the node was recorded, zero if that is not known.
func (n *Node) Recorded() (at time.Time, err error) {
	manifest, err := n.Manifest()
	if err != nil {
		return at, err
	}
	for _, collection := range manifest.Collections {
		if collection.Recorded.After(at) {
			at = collection.Recorded
		}
	}
	return at, nil
}

// Packages returns the versions of the installed packages of Debian by their names.
func (n *Node) Packages() (map[string]string, error) {
	text, err := n.HostOutput(workdir.HostDebs)
	return ParsePackages(text), err
}

// ParsePackages reads "dpkg -l": the versions of the installed packages by their names, without the
// architecture.
func ParsePackages(text string) map[string]string {
	packages := map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) >= 3 && len(words[0]) >= 2 && words[0][1] == 'i' { // installed, whatever is desired
			name, _, _ := strings.Cut(words[1], ":")
			packages[name] = words[2]
		}
	}
	return packages
}
