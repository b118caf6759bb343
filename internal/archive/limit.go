// limit.go bounds what is read of an archive or a folder: how many entries,
// how many bytes of one file and of all, and how much more comes out of a
// compressed one than went in. A few kilobytes can be terabytes.
package archive

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// ErrLimit is wrapped by the errors of this package; each names the flag that
// raises the limit.
var ErrLimit = errors.New("more than a source may hold")

// Limits of one source.
type Limits struct {
	Entries   int   // files, folders and links; a fiftieth of that may be kept, of a thousandth as many nodes
	FileBytes int64 // of one file that is kept
	Bytes     int64 // of all, unpacked
	Ratio     int64 // of bytes unpacked to bytes packed, beyond the first 128 MiB
}

func (l Limits) orDefault() Limits {
	if l == (Limits{}) {
		return Default()
	}
	return l
}

// Nodes checks how many nodes a source has.
func (l Limits) Nodes(n int) error {
	l = l.orDefault()
	if most := max(l.Entries/1000, 1); n > most {
		return fmt.Errorf("%w: %d nodes, over %d; if that is right, raise it with --max-entries (1000 for each)", ErrLimit, n, most)
	}
	return nil
}

// freely is how much may be unpacked of however little.
const freely = 128 << 20

// Default is what real reports stay far below: the largest seen have some
// hundred thousand entries and 30 GB, and pack to a tenth.
func Default() Limits {
	return Limits{Entries: 1_000_000, FileBytes: 8 << 30, Bytes: 100 << 30, Ratio: 250}
}

// Meter counts what is read of one source.
type Meter struct {
	limits   Limits
	packed   func() int64 // bytes read of the packed source; nil where nothing is packed
	unpacked atomic.Int64 // an archive in another is read by two goroutines
	entries  int
	kept     int
	links    int
}

// New makes the meter of one source; without limits, one of Default.
func New(limits Limits, packed func() int64) *Meter {
	return &Meter{limits: limits.orDefault(), packed: packed}
}

// Entry counts an entry.
func (m *Meter) Entry() error {
	if m.entries++; m.entries > m.limits.Entries {
		return fmt.Errorf("%w: over %d entries; if that is right, raise it with --max-entries", ErrLimit, m.limits.Entries)
	}
	return nil
}

// Link counts a link: each is kept, since a file may be reached by it.
func (m *Meter) Link() error {
	if m.links++; m.links > max(m.limits.Entries/5, 1) {
		return fmt.Errorf("%w: over %d links; if that is right, raise it with --max-entries (5 for each)", ErrLimit, m.limits.Entries/5)
	}
	return nil
}

// Keep counts a file that is kept, and bounds what is read of it. size is what
// its header says, 0 if nothing does.
func (m *Meter) Keep(name string, size int64, r io.Reader) (io.Reader, error) {
	if m.kept++; m.kept > max(m.limits.Entries/50, 1) {
		return nil, fmt.Errorf("%w: over %d files of Open vSwitch and OVN; if that is right, raise it with --max-entries (50 for each)", ErrLimit, m.limits.Entries/50)
	}
	if size > m.limits.FileBytes {
		return nil, m.tooLarge(name)
	}
	return &file{Reader: r, meter: m, name: name, left: m.limits.FileBytes}, nil
}

func (m *Meter) tooLarge(name string) error {
	return fmt.Errorf("%w: %q has over %d bytes; if that is right, raise it with --max-file-size", ErrLimit, name, m.limits.FileBytes)
}

// Counter counts the bytes that are read of a packed source.
type Counter struct {
	io.Reader
	N int64
}

func (c *Counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.N += int64(n)
	return n, err
}

type file struct {
	io.Reader
	meter *Meter
	name  string
	left  int64
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.left -= int64(n); f.left < 0 {
		return 0, f.meter.tooLarge(f.name)
	}
	return n, err
}

// Unpacked counts what comes out of r.
func (m *Meter) Unpacked(r io.Reader) io.Reader { return &unpacked{r, m} }

type unpacked struct {
	io.Reader
	meter *Meter
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	m := u.meter
	unpacked := m.unpacked.Add(int64(n))
	switch {
	case unpacked > m.limits.Bytes:
		return 0, fmt.Errorf("%w: over %d bytes unpacked; if that is right, raise it with --max-size", ErrLimit, m.limits.Bytes)
	case m.packed != nil && m.limits.Ratio > 0 && unpacked > freely && unpacked/m.limits.Ratio > m.packed():
		return 0, fmt.Errorf("%w: it unpacks to over %d times its size; if that is right, raise it with --max-ratio", ErrLimit, m.limits.Ratio)
	}
	return n, err
}
