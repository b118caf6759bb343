package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// captureFile reads the packets of a capture file, in the formats pcap and pcapng.
type captureFile struct {
	source gopacket.PacketDataSource
}

func openCapture(file io.Reader) (*captureFile, error) {
	in := bufio.NewReader(file)
	magic, err := in.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("not a capture file: %w", err)
	}
	opened := &captureFile{}
	var link layers.LinkType
	if string(magic) == "\x0a\x0d\x0d\x0a" { // the block type of a pcapng section header
		bounded := &boundedReader{in: in}
		reader, err := pcapgo.NewNgReader(bounded, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, fmt.Errorf("not a capture file: %w", err)
		}
		bounded.file = reader
		opened.source, link = reader, reader.LinkType()
	} else {
		reader, err := pcapgo.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("not a capture file: %w", err)
		}
		opened.source, link = reader, reader.LinkType()
	}
	if link != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("the capture file has packets of link type %v, not of Ethernet: capture on one interface, not on any", link)
	}
	return opened, nil
}

// maxInterfaces bounds the interfaces, and the names of hosts, that a capture file describes.
const maxInterfaces = 10_000

// boundedReader reads a pcapng file until it describes too many interfaces, each of which takes
// memory.
type boundedReader struct {
	in   io.Reader
	file *pcapgo.NgReader // nil until its beginning was read
}

func (b *boundedReader) Read(buffer []byte) (int, error) {
	if b.file != nil && b.file.NInterfaces()+b.file.NNames() > maxInterfaces {
		return 0, fmt.Errorf("the capture file describes more than %d interfaces", maxInterfaces)
	}
	return b.in.Read(buffer)
}

// next returns the bytes that were captured of the next packet, and its size on the wire. The
// error is io.EOF after the last packet, and io.ErrUnexpectedEOF if that is cut.
func (f *captureFile) next() (raw []byte, size int, err error) {
	raw, info, err := f.source.ReadPacketData()
	if errors.Is(err, io.EOF) && info.CaptureLength > 0 {
		err = io.ErrUnexpectedEOF // the file ends after the packet's header
	}
	return raw, max(info.Length, len(raw)), err
}
