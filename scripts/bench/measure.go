package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// way is one way to do the work of a case. The first way of a case is ovs-offline's.
type way struct {
	name  string
	once  bool // measured once: it takes long and varies little
	steps func() []step
	// before and after prepare the work and undo it; they are not measured.
	before, after func(ctx context.Context) error
	// daemons are folders of pid files: the CPU time of these daemons counts as well.
	daemons []string
}

// step is a pipeline of commands; the output of the last one is discarded.
type step []command

type command struct {
	argv []string
	env  []string
}

func argv(words ...string) command { return command{argv: words} }

// bench is one case.
type bench struct {
	name    string
	kind    string // common to cases that differ in size only
	size    int
	prepare func(ctx context.Context) error
	ways    []way
	finish  func(ctx context.Context) error
	targets []target
}

// sample is one run of a way.
type sample struct {
	Wall float64 `json:"wall_seconds"`
	CPU  float64 `json:"cpu_seconds"` // of the commands and of the daemons that they start or use
	// Peak is the peak memory of the first command, Together that of the command
	// with its children, in bytes, sampled every few milliseconds. Daemons are not
	// children.
	Peak     int64 `json:"peak_bytes"`
	Together int64 `json:"peak_with_children_bytes"`
}

// figure is all runs of a way.
type figure struct {
	Way     string   `json:"way"`
	Samples []sample `json:"samples"`
}

func (f figure) values(of func(sample) float64) []float64 {
	var all []float64
	for _, s := range f.Samples {
		all = append(all, of(s))
	}
	return all
}

func wall(s sample) float64     { return s.Wall }
func cpu(s sample) float64      { return s.CPU }
func peak(s sample) float64     { return float64(s.Peak) / 1e6 }
func together(s sample) float64 { return float64(s.Together) / 1e6 }

type result struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind,omitempty"`
	Size    int      `json:"size,omitempty"`
	Figures []figure `json:"figures"`
	Checks  []check  `json:"checks,omitempty"`
}

func (r result) figure(way string) figure {
	for _, f := range r.Figures {
		if f.Way == way {
			return f
		}
	}
	return figure{}
}

// measure runs the ways in turn, so that other load affects all of them.
func (c bench) measure(ctx context.Context, rounds int) (r result, err error) {
	r = result{Name: c.name, Kind: c.kind, Size: c.size}
	if c.finish != nil {
		defer func() { err = errors.Join(err, c.finish(context.WithoutCancel(ctx))) }()
	}
	if c.prepare != nil {
		if err := c.prepare(ctx); err != nil {
			return r, err
		}
	}
	for _, w := range c.ways {
		r.Figures = append(r.Figures, figure{Way: w.name})
	}
	for round := range rounds {
		for i, w := range c.ways {
			if w.once && round > 0 {
				continue
			}
			s, err := w.run(ctx)
			if err != nil {
				return r, fmt.Errorf("%s: %w", w.name, err)
			}
			r.Figures[i].Samples = append(r.Figures[i].Samples, s)
		}
	}
	for _, t := range c.targets {
		r.Checks = append(r.Checks, t.check(r))
	}
	return r, nil
}

func (w way) run(ctx context.Context) (sample, error) {
	var s sample
	if w.before != nil {
		if err := w.before(ctx); err != nil {
			return s, err
		}
	}
	steps, spent := w.steps(), daemonsCPU(w.daemons)
	begin := time.Now()
	for _, st := range steps {
		if err := st.run(ctx, &s); err != nil {
			return s, err
		}
	}
	s.Wall = time.Since(begin).Seconds()
	for pid, now := range daemonsCPU(w.daemons) {
		s.CPU += now - spent[pid]
	}
	if w.after != nil {
		return s, w.after(ctx)
	}
	return s, nil
}

func (st step) run(ctx context.Context, s *sample) error {
	var list []*exec.Cmd
	var stderr strings.Builder
	for i, c := range st {
		cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
		cmd.Env = append(cmd.Environ(), c.env...)
		cmd.Stderr = &stderr
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
	stop := watch(list[0].Process.Pid, s)
	// The last one first: its input is the pipe of the one before it.
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].Wait(); err != nil {
			stop()
			return fmt.Errorf("%v: %w: %s", list[i].Args, err, stderr.String())
		}
		usage, ok := list[i].ProcessState.SysUsage().(*syscall.Rusage)
		if ok {
			s.CPU += time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
		}
	}
	stop()
	return nil
}
