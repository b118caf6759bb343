package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// query is what ovs-vswitchd of a node was asked for one pass, and the pass that it printed. A
// query can be repeated with other actions, without changing the replica:
// ofproto/trace-packet-out executes actions and looks nothing up before them.
type query struct {
	host    *host.Host
	before  *query // for the pass that recirculated the packet, nil for the first one on a node
	bridge  string
	packet  flow.Packet
	actions string // executed in place of a lookup, "" for none
	pass    *pass.Pass
}

// run asks ovs-vswitchd and returns all passes that it prints.
func (q *query) run(ctx context.Context) ([]*pass.Pass, error) {
	argv := []string{"ofproto/trace", q.bridge, q.packet.Input()}
	if q.actions != "" {
		argv = []string{"ofproto/trace-packet-out", q.bridge, q.packet.Input(), q.actions}
	}
	text, err := q.host.Ask(ctx, argv...)
	if err != nil {
		return nil, err
	}
	return pass.Parse(text)
}

// packetOut executes actions on the packet as it was at the beginning of the pass, in the
// bridge of one of the stages. more are further passes that ovs-vswitchd printed.
func (q *query) packetOut(ctx context.Context, stage int, actions string) (made *query, more []*pass.Pass, err error) {
	packet, err := q.initialPacket(ctx)
	if err != nil {
		return nil, nil, err
	}
	bridge := q.pass.Stages[stage].Bridge
	if bridge != q.bridge {
		number := q.inPort(bridge)
		if number == "" {
			return nil, nil, fmt.Errorf("the port by which the packet entered %s is not known", bridge)
		}
		packet.Prepend("in_port", number)
	}
	if actions == "" {
		actions = "note:00" // without an action ovs-vswitchd would look the packet up in table 0
	}
	made = &query{host: q.host, before: q.before, bridge: bridge, packet: withoutEmptyTunnel(packet), actions: actions}
	passes, err := made.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	made.pass = passes[0]
	return made, passes[1:], nil
}

// inPort returns the number of the port by which the packet entered a bridge, "" if no flow
// there matched it.
func (q *query) inPort(bridge string) string {
	for ; q != nil; q = q.before {
		for i, stage := range slices.Backward(q.pass.Stages) {
			if stage.Bridge != bridge {
				continue
			}
			if number := (stageFields{q.pass, i}).inPort(); number != "" {
				return number
			}
		}
	}
	return ""
}

var recirculations = lazyregexp.New(`\brecirc\((0x[0-9a-f]+)\)`)

// initialPacket returns the packet as the pass begins, with the registers and other metadata
// of the pipeline. If a recirculation restores them, they are in the further passes that
// ovs-vswitchd prints after the pass before.
func (q *query) initialPacket(ctx context.Context) (flow.Packet, error) {
	packet := q.pass.Flow.Clone()
	if packet.DoubleTagged() {
		return packet, errors.New("the packet has two VLAN tags")
	}
	if !packet.Has("recirc_id") {
		return packet, nil
	}
	id, _ := packet.Number("recirc_id")
	packet.Delete("recirc_id", "dp_hash")
	unknown := fmt.Errorf("the registers at the recirculation %#x are not known", id)
	if q.before == nil {
		return packet, unknown
	}
	ids := recirculations.FindAllString(q.before.pass.ActionsText, -1)
	at := slices.Index(ids, fmt.Sprintf("recirc(%#x)", id))
	again, err := q.before.run(ctx)
	if err != nil || at < 0 {
		return packet, unknown
	}
	ids = recirculations.FindAllString(again[0].ActionsText, -1)
	for _, next := range again[1:] {
		if at < len(ids) && ids[at] == fmt.Sprintf("recirc(%#x)", next.ID) {
			copyMetadata(&packet, next.Flow)
			return packet, nil
		}
	}
	return packet, unknown
}

// copyMetadata gives a packet the metadata of the pipeline that another one has.
func copyMetadata(packet *flow.Packet, from flow.Packet) {
	headers := from.WithoutPipeline()
	for _, field := range from.Fields() {
		switch {
		case field.Name == "recirc_id", field.Name == "dp_hash", field.Name == "eth", strings.HasPrefix(field.Name, "ct_"):
		case headers.Has(field.Name) && field.Name != "in_port" && field.Name != "pkt_mark":
		default:
			packet.Prepend(field.Name, field.Value)
		}
	}
}

// withoutEmptyTunnel removes the tunnel fields that are 0: ovs-vswitchd prints them for a packet
// that came by a tunnel, and does not accept all of them.
func withoutEmptyTunnel(packet flow.Packet) flow.Packet {
	packet = packet.Clone()
	for _, field := range packet.Fields() {
		isTunnel := strings.HasPrefix(field.Name, "tun_") || strings.HasPrefix(field.Name, "gtpu_")
		if isTunnel && (isEqual(field.Value, "0") || field.Value == "0.0.0.0" || field.Value == "::") {
			packet.Delete(field.Name)
		}
	}
	return packet
}

// fieldsAt returns all fields of the packet at the lookup of a stage, or at one of its
// actions.
func (q *query) fieldsAt(ctx context.Context, stage, line int) (flow.Packet, error) {
	way, err := q.pass.WayTo(stage, line)
	if err != nil {
		return flow.Packet{}, err
	}
	there, _, err := q.packetOut(ctx, stage, way.Before())
	if err != nil {
		return flow.Packet{}, err
	}
	if there.pass.Final == "unchanged" {
		return there.pass.Flow, nil
	}
	return flow.Parse(there.pass.Final)
}
