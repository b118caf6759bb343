package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// ErrNoDatabase is wrapped when a workdir lacks the database to draw.
var ErrNoDatabase = errors.New("nothing to draw")

// read reads some tables of the database of a kind, or all where none is named, and
// the host name of its node.
func read(ctx context.Context, wd *workdir.Dir, kind workdir.Kind, tables ...string) (content *file.Content, host string, remarks []string, err error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return nil, "", nil, err
	}
	if collection := manifest.Collection(kind); collection != nil {
		host = collection.Host
	}
	path := wd.Database(kind)
	if kind == workdir.OVS { // a start makes one where none was collected
		path = cmp.Or(wd.SwitchDatabase(), wd.WorkingCopy(kind))
	}
	index, err := wd.Index(ctx, path, tables...)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", nil, fmt.Errorf("%w in %s: no %s database was collected", ErrNoDatabase, wd.Path(), kind.Title())
	}
	if err != nil {
		return nil, "", nil, err
	}
	defer index.Close()
	if content, err = index.Content(tables...); err == nil && content.Info.Name != kind.Schema() {
		err = fmt.Errorf("%s holds %s, not %s", path, content.Info.Name, kind.Schema())
	}
	return content, host, index.Remarks, err
}

// title returns the host, the OVS version and the number of boxes and ports.
func title(host string, content *file.Content, graph *Graph, one, many string) string {
	graph.one, graph.many = one, many
	text := graph.size()
	if rows := content.Rows("Open_vSwitch"); len(rows) == 1 && rows[0].String("ovs_version") != "" {
		text = "Open vSwitch " + rows[0].String("ovs_version") + ": " + text
	}
	if host != "" {
		text = host + ", " + text
	}
	return text
}

// size returns the number of boxes and ports.
func (g *Graph) size() string {
	ports, down, boxes := 0, 0, 0
	for _, box := range g.Boxes {
		if box.Kind == Remote || box.Kind == Network {
			continue
		}
		boxes++
		for _, port := range box.Ports {
			ports++
			for _, port := range append([]*Port{port}, port.Members...) {
				if port.State.isDown() {
					down++
				}
			}
		}
	}
	what := g.many
	if boxes == 1 {
		what = g.one
	}
	text := fmt.Sprintf("%d %s, %d ports", boxes, what, ports)
	if down > 0 {
		text += fmt.Sprintf(" (%d not up)", down)
	}
	return text
}
