package restore

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/pkg/openflow"
)

// helloTimeout bounds the exchange of HELLO messages, which takes less than a
// millisecond.
const helloTimeout = 2 * time.Second

// helloVersion returns the newest OpenFlow version that both this program and a bridge
// support. Both sides of a connection send OFPT_HELLO first, with the versions that
// they accept (OpenFlow 1.3.1, sections 6.3.1 and A.5.1).
func helloVersion(ctx context.Context, socket string) (openflow.Version, error) {
	dir, err := os.Open(filepath.Dir(socket)) // an address holds no more than 107 bytes
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const newest, length, versionBitmap, elementLength, ours = 6, 16, 1, 8, 0x7e
	if _, err := conn.Write([]byte{newest, 0, 0, length, 0, 0, 0, 1, 0, versionBitmap, 0, elementLength, 0, 0, 0, ours}); err != nil {
		return 0, err
	}
	return readHello(conn)
}

// readHello reads a HELLO message and returns the newest version that it accepts.
func readHello(r io.Reader) (openflow.Version, error) {
	var header [8]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, err
	}
	const hello, headerLength = 0, len(header)
	length := int(binary.BigEndian.Uint16(header[2:]))
	if header[1] != hello || length < headerLength {
		return 0, fmt.Errorf("expected an OpenFlow HELLO, got % x", header)
	}
	elements := make([]byte, length-headerLength)
	if _, err := io.ReadFull(r, elements); err != nil {
		return 0, err
	}
	versions := uint32(1)<<(min(header[0], 30)+1) - 1 // without a bitmap: all versions up to the one in the header
	for len(elements) >= 8 {
		kind, size := binary.BigEndian.Uint16(elements), int(binary.BigEndian.Uint16(elements[2:]))
		if kind == 1 && size >= 8 {
			versions = binary.BigEndian.Uint32(elements[4:])
		}
		elements = elements[min(len(elements), max(8, (size+7)/8*8)):]
	}
	for _, version := range openflow.Versions() {
		if versions>>version&1 == 1 {
			return version, nil
		}
	}
	return 0, fmt.Errorf("no common OpenFlow version: %#x", versions)
}
