package main

import (
	"fmt"
	"slices"
)

// target is an upper limit of a value of each round.
type target struct {
	line string
	unit string // "x", "ms", "MB"
	most float64
	of   func(r result, round int) float64
}

// check is the result of a target: the median of the rounds, and their spread.
type check struct {
	Line     string  `json:"line"`
	Unit     string  `json:"unit"`
	Value    float64 `json:"value"`
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
	Most     float64 `json:"target"`
	Met      bool    `json:"met"`
}

func (t target) check(r result) check {
	var values []float64
	for round := range r.Figures[0].Samples {
		values = append(values, t.of(r, round))
	}
	m := median(values)
	return check{Line: t.line, Unit: t.unit, Value: m, Least: slices.Min(values), Greatest: slices.Max(values), Most: t.most, Met: m <= t.most}
}

func (c check) verdict() string {
	if c.Met {
		return "met"
	}
	return "not met"
}

func (c check) String() string {
	return fmt.Sprintf("%s: %s (%s to %s), target %s: %s", c.Line, c.text(c.Value), c.text(c.Least), c.text(c.Greatest), c.text(c.Most), c.verdict())
}

func (c check) text(v float64) string {
	switch c.Unit {
	case "x":
		return fmt.Sprintf("%.2fx", v)
	default:
		return fmt.Sprintf("%.0f %s", v, c.Unit)
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// at returns a round's sample of a way, or its only sample.
func at(r result, way string, round int) sample {
	s := r.figure(way).Samples
	return s[min(round, len(s)-1)]
}

// ratio limits a value of one way divided by that of another.
func ratio(line string, of func(sample) float64, ours, other string, most float64) target {
	return target{line, "x", most, func(r result, round int) float64 {
		return of(at(r, ours, round)) / max(of(at(r, other, round)), 1e-6)
	}}
}

// duration limits the time of a way.
func duration(line string, ours string, most float64) target {
	return target{line, "ms", most, func(r result, round int) float64 { return 1000 * at(r, ours, round).Wall }}
}

// over limits the time by which one way is slower than another.
func over(line string, ours, other string, most float64) target {
	return target{line, "ms", most, func(r result, round int) float64 {
		return 1000 * (at(r, ours, round).Wall - at(r, other, round).Wall)
	}}
}

// beyond limits the time by which one way is slower than a base, divided by the time
// of other ways together.
func beyond(line string, ours, base string, most float64, others ...string) target {
	return target{line, "x", most, func(r result, round int) float64 {
		sum := 0.0
		for _, other := range others {
			sum += at(r, other, round).Wall
		}
		return (at(r, ours, round).Wall - at(r, base, round).Wall) / max(sum, 1e-6)
	}}
}

// memory limits the peak memory of a way.
func memory(line string, of func(sample) float64, ours string, most float64) target {
	return target{line, "MB", most, func(r result, round int) float64 { return of(at(r, ours, round)) }}
}

// flat limits the memory of the largest case divided by that of the smallest; the
// garbage collector causes that much variation.
const flat = 1.25

// growth compares the first way of the smallest and the largest case of a kind.
type growth struct {
	Kind     string  `json:"kind"`
	Sizes    []int   `json:"sizes"`
	Times    float64 `json:"times"` // the largest size to the smallest
	Wall     float64 `json:"wall_times"`
	CPU      float64 `json:"cpu_times"`
	Peak     float64 `json:"peak_times"`
	PeakLast float64 `json:"peak_megabytes"`
	Flat     bool    `json:"memory_flat"`
}

func growths(results []result) []growth {
	var all []growth
	for _, r := range results {
		if r.Kind == "" || slices.ContainsFunc(all, func(g growth) bool { return g.Kind == r.Kind }) {
			continue
		}
		g, first, last := growth{Kind: r.Kind}, r, r
		for _, other := range results {
			if other.Kind == r.Kind {
				g.Sizes, last = append(g.Sizes, other.Size), other
			}
		}
		if len(g.Sizes) < 2 {
			continue
		}
		times := func(of func(sample) float64) float64 {
			return median(last.Figures[0].values(of)) / max(median(first.Figures[0].values(of)), 1e-6)
		}
		g.Times = float64(last.Size) / float64(first.Size)
		g.Wall, g.CPU, g.Peak, g.PeakLast = times(wall), times(cpu), times(peak), median(last.Figures[0].values(peak))
		g.Flat = g.Peak <= flat
		all = append(all, g)
	}
	return all
}
