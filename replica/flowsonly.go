package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// makeDatabase makes an OVS database where none was collected: the bridges
// that have dumps, with the ports that ovs-ofctl show told of.
func (s *starter) makeDatabase(ctx context.Context) error {
	path, err := s.schema(ctx, workdir.OVS)
	if err != nil {
		return fmt.Errorf("no OVS database was collected, and none can be made without vswitch.ovsschema (Debian and Ubuntu have it in openvswitch-switch, Fedora in openvswitch): %w", err)
	}
	target := s.wd.WorkingCopy(workdir.OVS)
	if _, err := s.tool(ctx, "ovsdb-tool", "create", target, path); err != nil {
		return err
	}
	bridges, err := s.dumpedBridges()
	if err != nil {
		return err
	}
	transaction, err := s.bridgeTransaction(bridges)
	if err != nil {
		return err
	}
	if _, err := s.tool(ctx, "ovsdb-tool", "transact", target, transaction); err != nil {
		return err
	}
	s.remark("no OVS database was collected: bridges " + strings.Join(bridges, ", ") + " were made from their dumps and ovs-ofctl show; port types, tunnels, bonds and VLAN settings are not known")
	return nil
}

// dumpedBridges are the bridges that have dumps.
func (s *starter) dumpedBridges() ([]string, error) {
	entries, err := os.ReadDir(s.wd.RestoreFlows())
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	if c := s.manifest.Collection(workdir.OVS); c != nil {
		for _, name := range c.Bridges {
			found[name] = true
		}
	}
	for _, e := range entries {
		encoded, isFlows := strings.CutSuffix(e.Name(), ".flows.dump")
		if name, ok := workdir.DecodeName(encoded); isFlows && ok {
			found[name] = true
		}
	}
	var bridges []string
	for name := range found {
		bridges = append(bridges, name)
	}
	sort.Strings(bridges)
	if len(bridges) == 0 {
		return nil, fmt.Errorf("%s holds no flow dump", s.wd.RestoreFlows())
	}
	return bridges, nil
}

// bridgeTransaction is the OVSDB transaction (RFC 7047 section 4.1.3) that adds the bridges.
func (s *starter) bridgeTransaction(bridges []string) (string, error) {
	ops := []any{"Open_vSwitch"}
	var ids []any
	for i, name := range bridges {
		id := fmt.Sprintf("bridge%d", i)
		ids = append(ids, []any{"named-uuid", id})
		ports, more, err := s.portInserts(name, id)
		if err != nil {
			return "", err
		}
		ops = append(ops, more...)
		ops = append(ops, map[string]any{"op": "insert", "table": "Bridge", "uuid-name": id,
			"row": map[string]any{"name": name, "ports": []any{"set", ports}}})
	}
	ops = append(ops, map[string]any{"op": "insert", "table": "Open_vSwitch", "row": map[string]any{"bridges": []any{"set", ids}}})
	return marshal(ops)
}

// portInserts adds a bridge's ports: those that ovs-ofctl show told of, and the local one.
func (s *starter) portInserts(bridge, id string) (ports, ops []any, err error) {
	var show openflow.Description
	if f, err := os.Open(s.wd.BridgeRecorded(bridge, workdir.RecordedShow)); err == nil {
		show = openflow.Show(f)
		f.Close()
	}
	list := []openflow.Port{{Number: openflow.PortLocal, Name: bridge}}
	for _, p := range show.Ports {
		if p.Number != openflow.PortLocal && p.Name != bridge {
			list = append(list, p)
		}
	}
	for i, p := range list {
		iface := map[string]any{"name": p.Name, "ofport": p.Number}
		if p.Number == openflow.PortLocal {
			iface["type"] = "internal"
		}
		interfaceID, portID := fmt.Sprintf("%si%d", id, i), fmt.Sprintf("%sp%d", id, i)
		ops = append(ops,
			map[string]any{"op": "insert", "table": "Interface", "uuid-name": interfaceID, "row": iface},
			map[string]any{"op": "insert", "table": "Port", "uuid-name": portID, "row": map[string]any{"name": p.Name, "interfaces": []any{"named-uuid", interfaceID}}})
		ports = append(ports, []any{"named-uuid", portID})
	}
	return ports, ops, nil
}

func marshal(v any) (string, error) {
	raw, err := json.Marshal(v)
	return string(raw), err
}
