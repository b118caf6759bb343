package restore

import (
	"path/filepath"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// saveScript is what ovs-save's restore script (do_restore.sh of a collection
// by hand) tells: OpenFlow versions and TLV maps. It is read and never run.
type saveScript struct {
	openflow map[string]string   // by bridge
	tlv      map[string][]string // mappings by bridge
}

func (n *Node) saveScript() (saveScript, error) {
	s := saveScript{openflow: map[string]string{}, tlv: map[string][]string{}}
	f, ok, err := n.recorded(filepath.Join(n.Workdir.RestoreFlows(), workdir.SaveScript))
	if !ok {
		return s, err
	}
	defer f.Close()
	parts, cut, err := openflow.ReadSaveScript(f)
	if cut != "" {
		n.Report.Remark(n.relative(f.Name()) + " " + cut + ": what follows is not read")
	}
	for _, p := range parts {
		if p.OpenFlow != "" {
			s.openflow[p.Bridge] = p.OpenFlow
		}
		if p.Command == "add-tlv-map" {
			s.tlv[p.Bridge] = p.Mappings
		}
	}
	return s, err
}
