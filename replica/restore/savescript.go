package restore

import (
	"path/filepath"
	"regexp"
	"strings"
)

// saveScript is what ovs-save's restore script (do_restore.sh of a collection
// by hand) tells: OpenFlow versions and TLV maps. It is read and never run.
type saveScript struct {
	openflow map[string]string   // by bridge
	tlv      map[string][]string // mappings by bridge
}

// saveCommand matches a line of the script (ovs-save of OVS 2.6 to 3.7).
var saveCommand = regexp.MustCompile(`ovs-ofctl (?:-O (OpenFlow1[0-5]) )?(?:--bundle )?(add-tlv-map|add-groups|add-flows|replace-flows) (\S+)\s+(?:'([^']*)'|"([^"]*)")?`)

func (n *Node) saveScript() (saveScript, error) {
	text, err := n.text(filepath.Join(n.Workdir.RestoreFlows(), "do_restore.sh"))
	return readSaveScript(text), err
}

func readSaveScript(text string) saveScript {
	s := saveScript{openflow: map[string]string{}, tlv: map[string][]string{}}
	for line := range strings.Lines(text) {
		m := saveCommand.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] != "" {
			s.openflow[m[3]] = m[1]
		}
		if m[2] == "add-tlv-map" {
			s.tlv[m[3]] = splitMappings(m[4] + m[5])
		}
	}
	return s
}

// splitMappings splits '{class=..,type=..,len=..}->tun_metadataN,{...' at the commas between mappings.
func splitMappings(text string) []string {
	var list []string
	for _, part := range strings.SplitAfter(text, ",{") {
		part = strings.TrimSuffix(part, ",{")
		if part == "" {
			continue
		}
		if !strings.HasPrefix(part, "{") {
			part = "{" + part
		}
		list = append(list, part)
	}
	return list
}
