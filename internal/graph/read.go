package graph

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// ErrNoDatabase is wrapped when a workdir lacks the database to draw.
var ErrNoDatabase = errors.New("nothing to draw")

// read reads some tables of the database of a kind, or all where none is named, and
// the host name of its node.
func read(ctx context.Context, wd *workdir.Dir, k workdir.Kind, tables ...string) (content *file.Content, host string, remarks []string, err error) {
	m, err := wd.Manifest()
	if err != nil {
		return nil, "", nil, err
	}
	if c := m.Collection(k); c != nil {
		host = c.Host
	}
	content, remarks, err = file.Read(ctx, wd.Database(k), tables...)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", nil, fmt.Errorf("%w in %s: no %s database was collected", ErrNoDatabase, wd.Path(), k.Title())
	}
	if err == nil && content.Info.Name != k.Schema() {
		err = fmt.Errorf("%s holds %s, not %s", wd.Database(k), content.Info.Name, k.Schema())
	}
	return content, host, remarks, err
}

// title returns the host, the OVS version and the number of boxes and ports.
func title(host string, content *file.Content, g *Graph, one, many string) string {
	ports, down, boxes := 0, 0, 0
	for _, b := range g.Boxes {
		if b.Kind == Remote || b.Kind == Network {
			continue
		}
		boxes++
		for _, p := range b.Ports {
			ports++
			for _, port := range append([]*Port{p}, p.Members...) {
				if port.State.isDown() {
					down++
				}
			}
		}
	}
	if boxes == 1 {
		many = one
	}
	text := fmt.Sprintf("%d %s, %d ports", boxes, many, ports)
	if down > 0 {
		text += fmt.Sprintf(" (%d not up)", down)
	}
	if rows := content.Rows("Open_vSwitch"); len(rows) == 1 && rows[0].String("ovs_version") != "" {
		text = "Open vSwitch " + rows[0].String("ovs_version") + ": " + text
	}
	if host != "" {
		text = host + ", " + text
	}
	return text
}
