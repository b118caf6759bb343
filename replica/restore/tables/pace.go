package tables

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

// pace reports the progress of adding or reading back flows: their number, their
// rate, and the time that is left. It may be used concurrently.
type pace struct {
	report func(text string) // nil for none
	what   string
	began  time.Time

	mu       sync.Mutex
	count    int
	reported int // the count of the last report
}

func (t *Tables) pace(b Bridge, what string) *pace {
	return &pace{report: t.Progress, what: "flows of " + b.Name + ": " + what, began: time.Now()}
}

// paceStep is the number of flows between two reports.
const paceStep = 1000

// add counts flows that are done. share returns which part of the work is done
// at a count, 0 if unknown.
func (p *pace) add(flows int, share func(count int) float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += flows
	if p.report == nil || p.count < p.reported+paceStep {
		return
	}
	p.reported = p.count
	text := fmt.Sprintf("%s %d", p.what, p.count)
	if spent := time.Since(p.began); spent > 0 {
		text += fmt.Sprintf(" (%.0f a second", float64(p.count)/spent.Seconds())
		if done := share(p.count); done > 0 && done <= 1 {
			left := time.Duration(float64(spent) * (1 - done) / done)
			text += fmt.Sprintf(", %.0f %%, %v left", done*100, left.Round(time.Second))
		}
		text += ")"
	}
	p.report(text)
}

// countingReader counts the bytes that were read of a file.
type countingReader struct {
	io.Reader
	size int64 // of the file, 0 if unknown
	done atomic.Int64
}

func newCountingReader(r io.Reader) *countingReader {
	c := &countingReader{Reader: r}
	if f, ok := r.(fs.File); ok {
		if info, err := f.Stat(); err == nil {
			c.size = info.Size()
		}
	}
	return c
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.done.Add(int64(n))
	return n, err
}

// share returns which part of the file was read.
func (c *countingReader) share(int) float64 {
	return float64(c.done.Load()) / float64(max(c.size, 1))
}
