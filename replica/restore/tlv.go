package restore

import (
	"bytes"
	"context"
	"fmt"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreTLVMaps maps tunnel options to fields before anything names them.
func restoreTLVMaps(ctx context.Context, n *Node, o *report.Outcome) error {
	script, err := n.saveScript()
	if err != nil {
		return err
	}
	for _, b := range n.Bridges {
		list, err := n.entries(b, workdir.TLV, openflow.TLVMap)
		if err != nil {
			return err
		}
		if len(list) == 0 && len(script.tlv[b.Name]) > 0 {
			list = scriptMappings(script.tlv[b.Name])
			n.Report.Counts(b.Name, workdir.TLV).Collected = len(list)
		}
		if len(list) == 0 {
			continue
		}
		if err := n.restoreTLVMap(ctx, b, list, o); err != nil {
			return err
		}
	}
	return nil
}

func scriptMappings(texts []string) []openflow.Entry {
	var list []openflow.Entry
	for i, text := range texts {
		list = append(list, openflow.Entry{Line: i + 1, Text: text})
	}
	return list
}

func (n *Node) restoreTLVMap(ctx context.Context, b *Bridge, list []openflow.Entry, o *report.Outcome) error {
	version, err := n.speaks(ctx, b)
	if err != nil {
		return err
	}
	have, err := n.tlvMap(ctx, b, version)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range have {
		there[e.Text] = true
	}
	var missing []openflow.Entry
	for _, e := range list {
		if !there[e.Text] {
			missing = append(missing, e)
		}
	}
	if err := n.addEntries(ctx, b, workdir.TLV, missing, func(text string) error {
		_, err := n.ofctl(ctx, nil, version, b, "add-tlv-map", text)
		return err
	}); err != nil {
		return err
	}
	if have, err = n.tlvMap(ctx, b, version); err != nil {
		return err
	}
	n.compareEntries(b, workdir.TLV, list, have)
	o.Note(report.Restored, "")
	return nil
}

func (n *Node) tlvMap(ctx context.Context, b *Bridge, version string) ([]openflow.Entry, error) {
	out, err := n.ofctl(ctx, nil, version, b, "dump-tlv-map")
	if err != nil {
		return nil, err
	}
	list, _ := openflow.TLVMap(bytes.NewReader(out))
	return list, nil
}

// placeholdTLVs maps fields that flows name and no map was collected for, to
// options of the experimental class (RFC 8926 section 7.1) that no peer sends.
// ovn-controller maps one option, always the same.
func (n *Node) placeholdTLVs(ctx context.Context, b *Bridge, version string, missing []uint32) error {
	ovn, err := n.isOVNBridge(ctx, b)
	if err != nil {
		return err
	}
	for _, id := range missing {
		text, stands := fmt.Sprintf("{class=0xffff,type=%#x,len=4}->tun_metadata%d", id&0x7f, id), "a placeholder of 4 bytes stands for it"
		if ovn && id == 0 {
			text, stands = ovnOption, "OVN's own option stands for it"
		}
		_, err := n.ofctl(ctx, nil, version, b, "add-tlv-map", text)
		if err := n.placed(ctx, b, workdir.TLV, text, fmt.Sprintf("tun_metadata%d is named, and no TLV map of it was collected", id), stands, err); err != nil {
			return err
		}
	}
	return nil
}

// ovnOption is the Geneve option in which OVN carries its ports (ovn-architecture(7), "Tunnel Encapsulations").
const ovnOption = "{class=0x102,type=0x80,len=4}->tun_metadata0"

// isOVNBridge tells whether ovn-controller owns a bridge's flows.
func (n *Node) isOVNBridge(ctx context.Context, b *Bridge) (bool, error) {
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "external_ids")
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		ids := r.Map("external_ids")
		bridge := ids["ovn-bridge"]
		if bridge == "" {
			bridge = "br-int"
		}
		if b.Name == bridge && (ids["ovn-remote"] != "" || ids["ovn-encap-type"] != "") {
			return true, nil
		}
	}
	return false, nil
}
