package cmd

import (
	"fmt"
	"io"
	"sync"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// progress prints the progress of a command to stderr: on a terminal as one line that
// is redrawn, else as one line per second. Several goroutines can use it.
type progress struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	began time.Time // when reading the current source began
	last  time.Time // when a line was last printed
	read  int64     // bytes of the current source
	drawn bool      // there is a line to clear
}

func (o *IO) progress() *progress {
	now := time.Now()
	return &progress{out: o.Err, terminal: isTerminal(o.Err), began: now, last: now}
}

// print prints a line that the next one replaces.
func (p *progress) print(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	interval := time.Second
	if p.terminal {
		interval = 100 * time.Millisecond
	}
	if now.Sub(p.last) < interval {
		return
	}
	p.last = now
	line := terminal.Escape(fmt.Sprintf(format, args...))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\033[K%s", line)
		p.drawn = true
	} else {
		fmt.Fprintln(p.out, line)
	}
}

// bytes prints how much of a source was read, of total bytes if that is known.
func (p *progress) bytes(read, total int64) { p.print("reading: %s", p.rate(read, total)) }

func (p *progress) rate(read, total int64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read < p.read { // the next source
		p.began = time.Now()
	}
	p.read = read
	spent := time.Since(p.began)
	rate := show.MiB(read) / max(spent.Seconds(), 1e-3)
	if total > 0 && read > 0 && read <= total {
		left := time.Duration(float64(spent) / float64(read) * float64(total-read))
		return fmt.Sprintf("%.0f of %.0f MiB (%d %%), %.0f MiB/s, %v left", show.MiB(read), show.MiB(total), read*100/total, rate, left.Round(time.Second))
	}
	return fmt.Sprintf("%.0f MiB, %.0f MiB/s", show.MiB(read), rate)
}

// step prints what a step does: a line at its beginning, which stays, and then its output.
func (p *progress) step(name, line string) {
	const width = 79
	if line != "" {
		p.print("%s: %s", name, phrase.Shorten(line, max(0, width-len(name)-len(": ..."))))
		return
	}
	p.note("%s", name)
}

// note prints a line that stays.
func (p *progress) note(format string, args ...any) { p.noteOn(p.out, format, args...) }

// noteOn prints a line that stays on another stream, after the line that was drawn is cleared.
func (p *progress) noteOn(out io.Writer, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(out, terminal.Escape(fmt.Sprintf(format, args...)))
}

// end clears the line that was drawn, before anything else is printed.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\033[K")
		p.drawn = false
	}
}
