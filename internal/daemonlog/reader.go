package daemonlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
)

// Longest is the number of bytes of a line that are read. The rest of a longer line is left out, and
// Result.Cut counts the line.
const Longest = 64 << 10

// Options say what the lines of a file do not.
type Options struct {
	// Reference is a time shortly after the last line. The lines of syslog and klog have no year: it
	// is the one with which they are not after Reference. Zero stands for the time of the file.
	Reference time.Time
	// Location is the time zone of lines that name none, as lines of syslog, klog and OpenStack do.
	// Without it, these lines have no time.
	Location *time.Location
}

// Result says what was read of a file.
type Result struct {
	Lines     int // all of them
	Continued int // lines of no known format, which continue the line before them
	Cut       int // lines longer than Longest
	NoZone    int // lines whose time names no time zone
	NoYear    int // lines whose time names no year
	// Zone is the time zone of lines that name none, as far as lines show it that also have a time of
	// their program, in UTC; nil if none does. It is not used for this reading.
	Zone  *time.Location
	First time.Time // the earliest and the latest time of a line, zero if none has one
	Last  time.Time
	Lost  string // why the file could not be read to its end, "" if it was
}

// Reader reads the lines of one log.
type Reader struct {
	ctx     context.Context
	in      *bufio.Reader
	close   []func() error
	program []byte
	options Options
	result  Result
	line    Line
	isVlog  bool      // line is one of vlog
	last    time.Time // of the last line that has a time
	day     day
	zone    int    // of result.Zone, in seconds east of UTC
	long    []byte // the beginning of a line that was cut
	done    bool
}

// Open opens a log, which may be compressed with gzip, xz, zstd or bzip2. program is the one that wrote
// it; lines that name their program have that one.
func Open(ctx context.Context, path, program string, options Options) (*Reader, error) {
	file, err := interrupt.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if options.Reference.IsZero() {
		if info, err := os.Stat(path); err == nil {
			options.Reference = info.ModTime()
		}
	}
	r, err := NewReader(ctx, file, program, options)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.close = append(r.close, file.Close)
	return r, nil
}

// NewReader returns a Reader of a log, which may be compressed.
func NewReader(ctx context.Context, in io.Reader, program string, options Options) (*Reader, error) {
	packed := &counter{Reader: in}
	content, compressed, err := archive.Decompress(ctx, packed)
	if err != nil && !compressed {
		return nil, err
	}
	r := &Reader{ctx: ctx, program: []byte(program), options: options}
	if err != nil {
		r.done, r.result.Lost = true, err.Error()
		return r, nil
	}
	r.close = append(r.close, content.Close)
	var text io.Reader = content
	if compressed {
		text = archive.New(archive.Default(), packed.read.Load).Unpacked(content)
	}
	r.in = bufio.NewReaderSize(text, Longest)
	return r, nil
}

// counter counts the bytes that are read of a compressed file, also by another goroutine.
type counter struct {
	io.Reader
	read atomic.Int64
}

func (c *counter) Read(data []byte) (int, error) {
	n, err := c.Reader.Read(data)
	c.read.Add(int64(n))
	return n, err
}

// Close closes the log.
func (r *Reader) Close() error {
	var all error
	for _, closeOne := range r.close {
		all = errors.Join(all, closeOne())
	}
	return all
}

// Result says what was read so far.
func (r *Reader) Result() Result { return r.result }

// Next returns the next line, which is valid until Next is called again. The error is io.EOF at the end,
// also of a file that can't be read to its end, or that of the context.
func (r *Reader) Next() (*Line, error) {
	raw, err := r.read()
	if err != nil {
		return nil, err
	}
	r.result.Lines++
	r.line, r.isVlog = Line{Program: r.program, Number: r.result.Lines}, false
	if known := r.parse(raw); !known {
		r.result.Continued++
		r.line.At, r.line.Text, r.line.Continues = r.last, raw, true
		return &r.line, nil
	}
	r.note(r.line.At)
	return &r.line, nil
}

func (r *Reader) note(at time.Time) {
	r.last = at
	if at.IsZero() {
		return
	}
	if r.result.First.IsZero() || at.Before(r.result.First) {
		r.result.First = at
	}
	if at.After(r.result.Last) {
		r.result.Last = at
	}
}

// read returns the bytes of the next line, without its end.
func (r *Reader) read() ([]byte, error) {
	if r.done {
		return nil, io.EOF
	}
	raw, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.result.Cut++
		r.long = append(r.long[:0], raw...) // the buffer is needed for the rest
		raw, err = r.long, r.skipLine()
	}
	if err == nil {
		return trim(raw), nil
	}
	if cause := r.ctx.Err(); cause != nil {
		return nil, cause
	}
	r.done = true
	if !errors.Is(err, io.EOF) {
		r.result.Lost = err.Error()
	}
	if len(raw) == 0 {
		return nil, io.EOF
	}
	return trim(raw), nil
}

// skipLine reads to the end of a line.
func (r *Reader) skipLine() error {
	for {
		if _, err := r.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// trim cuts the end of a line off, and the bytes 0 before it that a file has after a crash of its
// machine.
func trim(raw []byte) []byte {
	for len(raw) > 0 && (raw[len(raw)-1] == '\n' || raw[len(raw)-1] == '\r') {
		raw = raw[:len(raw)-1]
	}
	for len(raw) > 0 && raw[0] == 0 {
		raw = raw[1:]
	}
	return raw
}

// Read calls yield with each line of a log, which Open describes. A line is valid until yield returns.
func Read(ctx context.Context, path, program string, options Options, yield func(*Line) error) (Result, error) {
	r, err := Open(ctx, path, program, options)
	if err != nil {
		return Result{}, err
	}
	defer r.Close()
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.result, nil
		}
		if err == nil {
			err = yield(line)
		}
		if err != nil {
			return r.result, err
		}
	}
}
