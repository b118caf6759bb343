package scratch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Keep writes the OVS database of a node to a file, with the node's own settings: Scratch changed them to lead ovn-controller to its
// copy of the southbound database.
func (s *Scratch) Keep(ctx context.Context, node string, settings ovn.Settings, to string) error {
	dir := s.options.Dir
	work := filepath.Join(dir.Run(), "result.db") // where the tools of an image can reach it
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if _, _, err := file.Standalone(ctx, s.Conf(node), work); err != nil {
		return err
	}
	transaction, err := json.Marshal([]any{ovsdb.OVS, map[string]any{"op": "update", "table": "Open_vSwitch", "where": []any{},
		"row": map[string]any{"external_ids": pairs(settings)}}})
	if err != nil {
		return err
	}
	if _, err := s.options.Runtime.Tool(ctx, dir.Run(), nil, "ovsdb-tool", "transact", work, string(transaction)); err != nil {
		return err
	}
	_, _, err = file.Standalone(ctx, work, to)
	return err
}

// pairs returns a map in the notation of RFC 7047, 5.1.
func pairs(values map[string]string) []any {
	list := [][]string{}
	for key, value := range values {
		list = append(list, []string{key, value})
	}
	return []any{"map", list}
}
