package archive

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// ErrLimit is wrapped by errors of a source that exceeds its Limits.
var ErrLimit = errors.New("the source exceeds a limit")

// Limits bounds how much is read of one source: a few kilobytes of a hostile archive
// can unpack to terabytes. Users set Bytes (--max-size); the other limits are fixed,
// and are fields only for tests. The zero value means Default.
type Limits struct {
	Bytes     int64 // unpacked, of all files
	FileBytes int64 // of one file that is kept
	Ratio     int64 // of bytes unpacked to bytes packed, beyond the first 128 MiB
	Entries   int   // files, folders and links
	Files     int   // that are kept
	Links     int
	Nodes     int
	// Aside and AsideBytes bound the number and the size of all files that are kept aside.
	Aside      int
	AsideBytes int64
}

// Default returns limits far above real reports: the largest known ones have about a
// hundred thousand entries and 30 GB, and compress to a tenth.
func Default() Limits {
	return Limits{Bytes: 100 << 30, FileBytes: 8 << 30, Ratio: 250, Entries: 1_000_000, Files: 20_000, Links: 200_000, Nodes: 1000,
		Aside: 30_000, AsideBytes: 16 << 30}
}

func (l Limits) orDefault() Limits {
	if l == (Limits{}) {
		return Default()
	}
	return l
}

// CheckNodes returns an error if a source has too many nodes.
func (l Limits) CheckNodes(n int) error { return tooMany(n, l.orDefault().Nodes, "nodes") }

func tooMany(n, limit int, what string) error {
	if n <= limit {
		return nil
	}
	return fmt.Errorf("%w: over %d %s; extract it and give only the part that matters", ErrLimit, limit, what)
}

// freeBytes is how many bytes may be unpacked at any ratio to the packed bytes.
const freeBytes = 128 << 20

// Meter counts the bytes and entries that are read of one source.
type Meter struct {
	limits   Limits
	packed   func() int64 // bytes read of the packed source; nil if nothing is packed
	unpacked atomic.Int64 // two goroutines read an archive inside another
	entries  int
	kept     int
	links    int
	aside    int
	// asideBytes is what may still be kept aside.
	asideBytes int64
}

// New returns the meter of one source.
func New(limits Limits, packed func() int64) *Meter {
	limits = limits.orDefault()
	return &Meter{limits: limits, packed: packed, asideBytes: limits.AsideBytes}
}

// Entry counts an entry.
func (m *Meter) Entry() error {
	m.entries++
	return tooMany(m.entries, m.limits.Entries, "entries")
}

// Link counts a link. All links are kept, because one may lead to a wanted file.
func (m *Meter) Link() error {
	m.links++
	return tooMany(m.links, m.limits.Links, "links")
}

// Keep counts a file that is kept, and bounds how much is read of it. size is the size
// in its header, 0 if it has none.
func (m *Meter) Keep(name string, size int64, r io.Reader) (io.Reader, error) {
	m.kept++
	if err := tooMany(m.kept, m.limits.Files, "files of Open vSwitch and OVN"); err != nil {
		return nil, err
	}
	var read int64
	check := func(n int) error {
		if read += int64(n); max(read, size) > m.limits.FileBytes {
			return fmt.Errorf("%w: %q has over %d bytes", ErrLimit, name, m.limits.FileBytes)
		}
		return nil
	}
	return checked{r, check}, check(0)
}

// KeepAside counts a file that is kept aside, and bounds how much is read of it. size is as for Keep.
// A file beyond the limits has no reader, and the error says which limit it exceeds. first is set for the
// first file above the number of files, so that only one warning is needed.
func (m *Meter) KeepAside(size int64, r io.Reader) (in io.Reader, first bool, err error) {
	m.aside++
	if m.aside > m.limits.Aside {
		return nil, m.aside == m.limits.Aside+1, fmt.Errorf("over %d logs and other files of the machine: this one and later ones are left out", m.limits.Aside)
	}
	most := min(m.limits.FileBytes, m.asideBytes)
	tooLong := fmt.Errorf("it has over %d bytes, more than logs and other files of the machine may have", most)
	if size > most {
		return nil, true, tooLong
	}
	var read int64
	return checked{r, func(n int) error {
		m.asideBytes -= int64(n)
		if read += int64(n); read > most {
			m.asideBytes += read
			return tooLong
		}
		return nil
	}}, false, nil
}

// Counter counts the bytes that are read from a reader, and records its end.
type Counter struct {
	io.Reader
	N     int64
	Ended bool
}

func (c *Counter) Read(data []byte) (int, error) {
	n, err := c.Reader.Read(data)
	c.N += int64(n)
	c.Ended = c.Ended || errors.Is(err, io.EOF)
	return n, err
}

// checked is a reader that ends with the error of check, which gets the number of
// bytes of each read.
type checked struct {
	io.Reader
	check func(n int) error
}

func (c checked) Read(data []byte) (int, error) {
	n, err := c.Reader.Read(data)
	if refused := c.check(n); refused != nil {
		return 0, refused
	}
	return n, err
}

// Unpacked returns a reader that counts the bytes.
func (m *Meter) Unpacked(r io.Reader) io.Reader {
	return checked{r, m.countUnpacked}
}

func (m *Meter) countUnpacked(n int) error {
	unpacked := m.unpacked.Add(int64(n))
	switch {
	case unpacked > m.limits.Bytes:
		return fmt.Errorf("%w: it unpacks to over %d bytes; --max-size allows more", ErrLimit, m.limits.Bytes)
	case m.packed != nil && m.limits.Ratio > 0 && unpacked > freeBytes && unpacked/m.limits.Ratio > m.packed():
		return fmt.Errorf("%w: it unpacks to over %d times its size; extract it and give only the part that matters", ErrLimit, m.limits.Ratio)
	}
	return nil
}
