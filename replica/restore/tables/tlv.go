package tables

import (
	"context"
	"fmt"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// TLVMaps maps tunnel options to fields, before any flow refers to the fields.
func (t *Tables) TLVMaps(ctx context.Context, o *report.Outcome) error {
	script, err := t.saveScript()
	if err != nil {
		return err
	}
	for _, b := range t.Bridges {
		list, err := t.entries(b, workdir.TLV, openflow.TLVMap)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			for i, text := range script.mappings[b.Name] {
				list = append(list, openflow.Entry{Line: i + 1, Text: text})
			}
			if len(list) == 0 {
				continue
			}
			t.Report.Counts(b.Name, workdir.TLV).Collected = len(list)
		}
		version, err := t.Switch.Version(ctx, b.Name)
		if err != nil {
			return err
		}
		if err := t.addEach(ctx, b, version, workdir.TLV, "add-tlv-map", list); err != nil {
			return err
		}
		if err := t.compare(ctx, b, version, NoNames, workdir.TLV, "dump-tlv-map", openflow.TLVMap, list); err != nil {
			return err
		}
		o.Note(report.Restored, "")
	}
	return nil
}

// ovnMapping maps the Geneve option in which OVN carries its ports
// (ovn-architecture(7), "Tunnel Encapsulations"), the only one that
// ovn-controller maps.
const ovnMapping = "{class=0x102,type=0x80,len=4}->tun_metadata0"

// addTLVPlaceholders maps fields without a collected mapping to options of the
// experimental class (RFC 8926 section 7.1), which no peer sends.
func (t *Tables) addTLVPlaceholders(ctx context.Context, b Bridge, version openflow.Version, missing []uint32) error {
	if len(missing) == 0 {
		return nil
	}
	ovn, err := t.Switch.IsOVN(ctx, b.Name)
	if err != nil {
		return err
	}
	for _, id := range missing {
		text, how := fmt.Sprintf("{class=0xffff,type=%#x,len=4}->tun_metadata%d", id&0x7f, id), "mapped to an option of 4 bytes that no peer sends"
		if ovn && id == 0 {
			text, how = ovnMapping, "mapped to OVN's own option"
		}
		why := fmt.Sprintf("flows refer to tun_metadata%d, whose mapping was not collected", id)
		if err := t.addPlaceholder(ctx, b, version, workdir.TLV, "add-tlv-map", text, why, how); err != nil {
			return err
		}
	}
	return nil
}
