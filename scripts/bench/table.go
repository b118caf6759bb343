package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// report holds the results of one run. It is the document build/bench.json.
type report struct {
	Date    string   `json:"date"`
	Machine []string `json:"machine"`
	Results []result `json:"results"`
	Growth  []growth `json:"growth,omitempty"`
}

// describeMachine returns the properties of this machine that figures depend on.
func describeMachine() []string {
	lines := []string{fmt.Sprintf("%d cores, %s", runtime.NumCPU(), runtime.GOARCH)}
	for _, look := range []struct{ path, key string }{{"/proc/cpuinfo", "model name"}, {"/proc/meminfo", "MemTotal"}, {"/proc/loadavg", ""}} {
		raw, err := os.ReadFile(look.path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, look.key) {
				_, value, found := strings.Cut(line, ":")
				if !found {
					value = "load at the beginning: " + line
				}
				lines = append(lines, strings.TrimSpace(value))
				break
			}
		}
	}
	for _, tool := range [][]string{{"uname", "-sr"}, {"ovs-vswitchd", "--version"}, {"xz", "--version"}} {
		out, err := exec.Command(tool[0], tool[1:]...).Output()
		first, _, _ := strings.Cut(string(out), "\n")
		if err == nil {
			lines = append(lines, first)
		}
	}
	return lines
}

// String returns the figures of the case and its targets.
func (r result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Name)
	for _, f := range r.Figures {
		walls := f.values(wall)
		fmt.Fprintf(&b, "    %-28s wall %8.3f s (%.3f to %.3f)  cpu %8.3f s  peak %6.1f MB, with children %6.1f MB", f.Way, median(walls), slices.Min(walls), slices.Max(walls),
			median(f.values(cpu)), slices.Max(f.values(peak)), slices.Max(f.values(together)))
		if f.Way != r.Figures[0].Way {
			fmt.Fprintf(&b, "  ours: wall %.2fx cpu %.2fx", r.ours(f.Way, wall), r.ours(f.Way, cpu))
		}
		b.WriteByte('\n')
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "    %s\n", c)
	}
	return b.String()
}

// ours returns the value of the first way divided by that of another, as the median
// of the rounds.
func (r result) ours(way string, of func(sample) float64) float64 {
	var all []float64
	for round, s := range r.Figures[0].Samples {
		all = append(all, of(s)/max(of(at(r, way, round)), 0.001))
	}
	return median(all)
}

// summary returns the targets and the growth of all cases.
func (p report) summary() string {
	var b strings.Builder
	for _, r := range p.Results {
		for _, c := range r.Checks {
			fmt.Fprintf(&b, "%-8s %s\n", strings.ToUpper(c.verdict()), c)
		}
	}
	for _, g := range p.Growth {
		fmt.Fprintf(&b, "growth   %s, %v (%.0f times): wall %.1f times, cpu %.1f times, memory %.2f times (%.0f MB): %s\n", g.Kind, g.Sizes, g.Times, g.Wall, g.CPU, g.Peak, g.PeakLast, g.verdict())
	}
	return b.String()
}

// verdict returns whether memory is flat, in the words of a target.
func (g growth) verdict() string { return check{Met: g.Flat}.verdict() }

// The comments around the tables in a document.
const (
	tablesBegin = "<!-- bench: begin -->\n"
	tablesEnd   = "<!-- bench: end -->\n"
)

// into replaces the tables in a document.
func (p report) into(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(raw), tablesBegin)
	_, behind, ends := strings.Cut(rest, tablesEnd)
	if !begins || !ends {
		return fmt.Errorf("%s: no %q and %q", path, strings.TrimSpace(tablesBegin), strings.TrimSpace(tablesEnd))
	}
	return os.WriteFile(path, []byte(before+tablesBegin+"\n"+p.markdown()+"\n"+tablesEnd+behind), 0o644)
}

func (p report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run of %s on: %s.\n\n", p.Date, strings.Join(p.Machine, "; "))
	b.WriteString("| to be reached | measured | spread | target | |\n|---|---|---|---|---|\n")
	for _, r := range p.Results {
		for _, c := range r.Checks {
			fmt.Fprintf(&b, "| %s | %s | %s to %s | %s | %s |\n", c.Line, c.text(c.Value), c.text(c.Least), c.text(c.Greatest), c.text(c.Most), c.verdict())
		}
	}
	b.WriteString("\n| case | way | wall (s) | spread | CPU (s) | peak (MB) | with children (MB) | ours, wall | ours, CPU |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range p.Results {
		for i, f := range r.Figures {
			name, w, c := strings.ReplaceAll(f.Way, "|", `\|`), "", ""
			title := ""
			if i == 0 {
				title = r.Name
			} else {
				w, c = fmt.Sprintf("%.2fx", r.ours(f.Way, wall)), fmt.Sprintf("%.2fx", r.ours(f.Way, cpu))
			}
			walls := f.values(wall)
			fmt.Fprintf(&b, "| %s | %s | %.3f | %.3f to %.3f | %.3f | %.0f | %.0f | %s | %s |\n", title, name, median(walls), slices.Min(walls), slices.Max(walls),
				median(f.values(cpu)), slices.Max(f.values(peak)), slices.Max(f.values(together)), w, c)
		}
	}
	if len(p.Growth) > 0 {
		b.WriteString("\n| growth of ours | sizes | size | wall | CPU | memory | MB at the largest | memory is flat |\n|---|---|---|---|---|---|---|---|\n")
		for _, g := range p.Growth {
			fmt.Fprintf(&b, "| %s | %s | %.0fx | %.1fx | %.1fx | %.2fx | %.0f | %s |\n", g.Kind, strings.Trim(fmt.Sprint(g.Sizes), "[]"), g.Times, g.Wall, g.CPU, g.Peak, g.PeakLast, g.verdict())
		}
	}
	return b.String()
}
