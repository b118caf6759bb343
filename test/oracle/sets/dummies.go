package sets

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// dummies are the cables of a set whose interfaces are dummies of Open vSwitch.
type dummies struct {
	w     *wire
	tails []*tail
	taps  map[string]*tapEnd // by label: of VMs behind Linux bridges
}

func newDummies(w *wire) *dummies {
	d := &dummies{w: w, taps: map[string]*tapEnd{}}
	for _, p := range w.ports {
		if p.Role == roleEdge && p.Bridge == noBridge {
			d.taps[p.Label] = &tapEnd{port: p, socket: filepath.Join(w.dir, "wires", p.Node+"-"+p.Name+".sock"), fd: -1}
			continue
		}
		if p.Role == roleProcess {
			continue
		}
		recorded := filepath.Join(w.home(p.Node), "pcap", p.Name)
		d.tails = append(d.tails, &tail{port: p, file: recorded + ".pcap", offset: pcapHeader})
		if p.Role == roleNamespace {
			d.tails = append(d.tails, &tail{port: p, file: recorded + ".out.pcap", offset: pcapHeader, left: true})
		}
	}
	return d
}

func (d *dummies) put(ctx context.Context, p Port, frame []byte) error {
	if tap, ok := d.taps[p.Label]; ok {
		return tap.put(frame)
	}
	if p.Role == roleProcess {
		for _, r := range d.w.relays {
			if r.name == p.Node+"-"+p.Namespace {
				return r.send(frame)
			}
		}
		return fmt.Errorf("no relay keeps the namespace %s of node %s", p.Namespace, p.Node)
	}
	_, err := d.w.ask(ctx, p.Node, "netdev-dummy/receive", p.Name, hex.EncodeToString(frame))
	return err
}

func (d *dummies) take() ([]caught, error) {
	var list []caught
	for _, tap := range d.taps {
		frames, err := tap.take()
		if err != nil {
			return list, err
		}
		for _, frame := range frames {
			list = append(list, caught{tap.port, frame, false})
		}
	}
	for _, t := range d.tails {
		frames, err := t.read()
		if err != nil {
			return list, err
		}
		for _, frame := range frames {
			list = append(list, caught{t.port, frame, t.left})
		}
	}
	return list, nil
}

func (d *dummies) close() error {
	var err error
	for _, tap := range d.taps {
		err = errors.Join(err, tap.close())
	}
	return err
}

// tail reads the frames that were appended to the recording of a port.
type tail struct {
	port   Port
	file   string
	offset int64
	left   bool // of frames that left the namespace of the port
}

const (
	pcapHeader = 24
	pcapRecord = 16
)

// read returns the frames that were added. A record that is not yet complete stays.
func (t *tail) read() ([][]byte, error) {
	info, err := os.Stat(t.file)
	if errors.Is(err, os.ErrNotExist) || (err == nil && info.Size() <= t.offset) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(t.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	added, err := io.ReadAll(io.NewSectionReader(f, t.offset, info.Size()-t.offset))
	if err != nil {
		return nil, err
	}
	var frames [][]byte
	for len(added) >= pcapRecord {
		length := int(binary.LittleEndian.Uint32(added[8:]))
		if len(added) < pcapRecord+length {
			break
		}
		frames = append(frames, added[pcapRecord:pcapRecord+length])
		added = added[pcapRecord+length:]
		t.offset += int64(pcapRecord + length)
	}
	return frames, nil
}
