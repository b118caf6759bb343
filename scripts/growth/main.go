// Growth times the readers of foreign text on hostile texts of three sizes, each ten times the one before, and prints for
// each reader the text that grew most: see `make bench`. A reader whose time grows with the size takes ten times as long
// each time, and one whose time grows with its square a hundred times.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// smallest is the size of the smallest text in bytes. The largest is a hundred times as large.
const smallest = 10 << 10

// most is the time after which a larger text is not tried.
const most = 5 * time.Second

// measured are the times of a reader for one shape of text.
type measured struct {
	reader, shape string
	times         []time.Duration // of texts of 1x, 10x and 100x
}

// last returns the time of the largest text.
func (m measured) last() time.Duration { return m.times[len(m.times)-1] }

func main() {
	only := flag.String("only", "", "only readers whose name contains this text")
	all := flag.Bool("all", false, "print all shapes, not the slowest of each reader alone")
	flag.Parse()
	fmt.Println("| reader | slowest text | 1x (10 KB) | 10x | 100x (1 MB) | ratios |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, r := range readers() {
		if !strings.Contains(r.name, *only) {
			continue
		}
		var list []measured
		for _, shape := range shapes(r.unit) {
			list = append(list, measure(r, shape))
		}
		slices.SortFunc(list, func(a, b measured) int { return cmp.Compare(b.last(), a.last()) })
		if !*all {
			list = list[:1]
		}
		for _, m := range list {
			m.print()
		}
	}
}

func measure(r reader, s shape) measured {
	m := measured{reader: r.name, shape: s.name}
	for _, size := range []int{smallest, 10 * smallest, 100 * smallest} {
		text := s.text(size)
		begun := processorTime()
		r.read(text)
		m.times = append(m.times, processorTime()-begun)
		if m.last() > most {
			break
		}
	}
	return m
}

// processorTime returns the processor time of this process: other processes share the machine.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func (m measured) print() {
	cells := []string{"-", "-", "-"}
	ratios := "1"
	for i, took := range m.times {
		cells[i] = took.Round(10 * time.Microsecond).String()
		if i > 0 {
			ratios += fmt.Sprintf(":%.0f", float64(took)/float64(max(m.times[0], time.Microsecond)))
		}
	}
	if len(m.times) < len(cells) {
		ratios += ", then given up"
	}
	fmt.Printf("| %s | %s | %s | %s |\n", m.reader, m.shape, strings.Join(cells, " | "), ratios)
}

// shape is a way to make a text of any size.
type shape struct {
	name string
	text func(size int) string
}

// shapes are the texts that a reader gets: what its program prints, many times and in one line, and parts of it that repeat.
func shapes(unit string) []shape {
	head := strings.TrimSuffix(unit, "\n")
	fill := func(begin, part, end string) func(size int) string {
		return func(size int) string {
			return begin + strings.Repeat(part, max(1, (size-len(begin)-len(end))/len(part))) + end
		}
	}
	list := []shape{
		{"the same lines", fill("", unit, "")},
		{"one line", fill("", strings.ReplaceAll(unit, "\n", " "), "\n")},
		{"empty lines", fill(unit, "\n", unit)},
		{"indented lines", fill(unit, "  a: b\n", "")},
		{"numbered lines", func(size int) string {
			var b strings.Builder
			for i := 0; b.Len() < size; i++ {
				b.WriteString(strings.ReplaceAll(unit, "1", fmt.Sprint(i)))
			}
			return b.String()
		}},
	}
	for _, part := range []string{" ", ",", "=", "(", "{", "[", `"`, ":", "/", "a,", "a=1,", "a(", "a ", "a:b ", "a\n", "-", "'", `\`, "0", "1.", "<a>", "`", "|", ";", "set(a=", "\t", "a: b\n"} {
		list = append(list, shape{fmt.Sprintf("repeated %q", part), fill(head, part, "\n")}, shape{fmt.Sprintf("%q alone", part), fill("", part, "\n")})
	}
	return list
}
