package synth

import (
	"context"
	"io"
	"os"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// addFile stages a copy of a file.
func (s stager) addFile(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	return s.add(file, to, "")
}

// add stages a text as a file. A file of a bridge is a dump.
func (s stager) add(text io.Reader, path, bridge string) error {
	file, err := s.staging.Copy(s.ctx, text, path)
	if err != nil {
		return err
	}
	file.Origin = "synthesised"
	if file.Bridge = bridge; bridge != "" {
		file.OpenFlow = openflow.OpenFlow15.String()
	}
	s.into.Files = append(s.into.Files, file)
	return nil
}

// central stages the OVN databases of the workdir for a chassis, and returns their
// collections. They are links to the same files, which nothing ever writes to.
func (r *run) central(ctx context.Context, staging *workdir.Staging, of ovn.Chassis) (collections []workdir.Collection, err error) {
	manifest, err := r.wd.Manifest()
	if err != nil {
		return nil, err
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		path := r.wd.Database(kind)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		collection := workdir.Collection{Kind: kind, Source: workdir.Source{Kind: "database file", Name: path}}
		if known := manifest.Collection(kind); known != nil {
			collection = *known
		}
		if err := staging.Replace(kind, false); err != nil {
			return nil, err
		}
		file, err := stageLink(ctx, staging, path, staging.Database(kind))
		if err != nil {
			return nil, err
		}
		file.Origin = path
		collection.Host, collection.Node = of.Hostname, of.Title()
		collection.Files, collection.Lost, collection.LostDatabases, collection.Remarks = []workdir.File{file}, nil, nil, nil
		collections = append(collections, collection)
	}
	return collections, nil
}

// stageLink stages a link to a file, or a copy where the file system has no links.
func stageLink(ctx context.Context, staging *workdir.Staging, path, to string) (workdir.File, error) {
	spool, err := staging.Spool()
	if err != nil {
		return workdir.File{}, err
	}
	name := spool + "/link"
	if os.Link(path, name) == nil {
		info, err := os.Stat(name)
		if err != nil {
			return workdir.File{}, err
		}
		sum, err := workdir.SumOf(ctx, name)
		if err != nil {
			return workdir.File{}, err
		}
		return staging.Move(archive.File{Spooled: name, Size: info.Size(), SHA256: sum}, to)
	}
	file, err := os.Open(path)
	if err != nil {
		return workdir.File{}, err
	}
	defer file.Close()
	return staging.Copy(ctx, file, to)
}
