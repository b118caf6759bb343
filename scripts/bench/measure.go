package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// way is one way to do a case's work: ours first, then what it is compared with.
type way struct {
	name  string
	once  bool // takes long and varies little
	steps func() []step
	after func(ctx context.Context) error // undoes the work, off the clock; nil for nothing
}

// step is a pipeline of commands; the last one's output is dropped.
type step []command

type command struct {
	argv []string
	env  []string
}

func argv(words ...string) command { return command{argv: words} }

// bench is one case.
type bench struct {
	name    string
	prepare func(ctx context.Context) error
	ways    []way
	finish  func(ctx context.Context) error
}

// figure is what one way took: medians of the rounds, and how far they spread.
type figure struct {
	Way     string  `json:"way"`
	Wall    float64 `json:"wall_seconds"`
	Fastest float64 `json:"wall_fastest"`
	Slowest float64 `json:"wall_slowest"`
	CPU     float64 `json:"cpu_seconds"` // of the commands; not of daemons that they leave running
	// Peak is the memory of the largest command, in bytes. A process starts with
	// what the one that forked it had: this program's own 30 MB are no news.
	Peak int64 `json:"peak_bytes"`
}

type result struct {
	Name    string   `json:"name"`
	Figures []figure `json:"figures"`
}

// String is the case's lines of the table: ratios are of ours to the others.
func (r result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Name)
	ours := r.Figures[0]
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "    %-28s wall %8.3f s (%.3f to %.3f)  cpu %8.3f s  peak %6.1f MB", f.Way, f.Wall, f.Fastest, f.Slowest, f.CPU, float64(f.Peak)/1e6)
		if f.Way != ours.Way {
			fmt.Fprintf(&b, "  ours: wall %.2fx cpu %.2fx", ours.Wall/f.Wall, ours.CPU/max(f.CPU, 0.001))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// measure runs the ways in turn, so that what else the machine does meets all alike.
func (c bench) measure(ctx context.Context, rounds int) (r result, err error) {
	r.Name = c.name
	if c.finish != nil {
		defer func() { err = errors.Join(err, c.finish(context.WithoutCancel(ctx))) }()
	}
	if c.prepare != nil {
		if err := c.prepare(ctx); err != nil {
			return r, err
		}
	}
	taken := make([][]figure, len(c.ways))
	for round := range rounds {
		for i, w := range c.ways {
			if w.once && round > 0 {
				continue
			}
			f, err := w.run(ctx)
			if err != nil {
				return r, fmt.Errorf("%s: %w", w.name, err)
			}
			taken[i] = append(taken[i], f)
		}
	}
	for i, w := range c.ways {
		r.Figures = append(r.Figures, median(w.name, taken[i]))
	}
	return r, nil
}

func median(name string, taken []figure) figure {
	slices.SortFunc(taken, func(a, b figure) int { return int((a.Wall - b.Wall) * 1e9) })
	m := taken[len(taken)/2]
	m.Way, m.Fastest, m.Slowest = name, taken[0].Wall, taken[len(taken)-1].Wall
	for _, f := range taken {
		m.Peak = max(m.Peak, f.Peak)
	}
	return m
}

func (w way) run(ctx context.Context) (figure, error) {
	var f figure
	steps := w.steps()
	begin := time.Now()
	for _, s := range steps {
		if err := s.run(ctx, &f); err != nil {
			return f, err
		}
	}
	f.Wall = time.Since(begin).Seconds()
	if w.after != nil {
		return f, w.after(ctx)
	}
	return f, nil
}

func (s step) run(ctx context.Context, f *figure) error {
	var list []*exec.Cmd
	var said strings.Builder
	for i, c := range s {
		cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
		cmd.Env = append(cmd.Environ(), c.env...)
		cmd.Stderr = &said
		if i > 0 {
			out, err := list[i-1].StdoutPipe()
			if err != nil {
				return err
			}
			cmd.Stdin = out
		}
		list = append(list, cmd)
	}
	list[len(list)-1].Stdout = io.Discard
	for _, cmd := range list {
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	// The last one first: its input is the pipe of the one before it.
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].Wait(); err != nil {
			return fmt.Errorf("%v: %w: %s", list[i].Args, err, said.String())
		}
		usage, ok := list[i].ProcessState.SysUsage().(*syscall.Rusage)
		if ok {
			f.CPU += time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
			f.Peak = max(f.Peak, usage.Maxrss*1024)
		}
	}
	return nil
}
