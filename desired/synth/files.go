package synth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// sumOf returns the sha256 of a file.
func sumOf(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, interrupt.Reader(ctx, f))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// addFile stages a copy of a file.
func (s stager) addFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.add(f, to, "")
}

// add stages a text as a file. A file of a bridge is a dump.
func (s stager) add(text io.Reader, path, bridge string) error {
	f, err := s.staging.Copy(s.ctx, text, path)
	if err != nil {
		return err
	}
	f.Origin = "synthesised"
	if f.Bridge = bridge; bridge != "" {
		f.OpenFlow = openflow.OpenFlow15.String()
	}
	s.into.Files = append(s.into.Files, f)
	return nil
}

// central stages the OVN databases of the workdir for a chassis, and returns their
// collections. They are links to the same files, which nothing ever writes to.
func (r *run) central(ctx context.Context, staging *workdir.Staging, of Chassis) (collections []workdir.Collection, err error) {
	m, err := r.wd.Manifest()
	if err != nil {
		return nil, err
	}
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		path := r.wd.Database(k)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		c := workdir.Collection{Kind: k, Source: workdir.Source{Kind: "database file", Name: path}}
		if known := m.Collection(k); known != nil {
			c = *known
		}
		if err := staging.Replace(k, false); err != nil {
			return nil, err
		}
		f, err := link(ctx, staging, path, staging.Database(k))
		if err != nil {
			return nil, err
		}
		f.Origin = path
		c.Host, c.Node = of.Hostname, of.Title()
		c.Files, c.Lost, c.LostDatabases, c.Remarks = []workdir.File{f}, nil, nil, nil
		collections = append(collections, c)
	}
	return collections, nil
}

// link stages a link to a file, or a copy where the file system has no links.
func link(ctx context.Context, staging *workdir.Staging, path, to string) (workdir.File, error) {
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
		sum, err := sumOf(ctx, name)
		if err != nil {
			return workdir.File{}, err
		}
		return staging.Move(archive.File{Spooled: name, Size: info.Size(), SHA256: sum}, to)
	}
	f, err := os.Open(path)
	if err != nil {
		return workdir.File{}, err
	}
	defer f.Close()
	return staging.Copy(ctx, f, to)
}
