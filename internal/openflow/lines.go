// Package openflow reads the text that ovs-ofctl prints (flows, groups, meters,
// TLV maps, bridge descriptions): it parses just enough of it to clean it, to
// mend what ovs-ofctl can't read back, and to compare it. It knows no files and
// no switches.
package openflow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
)

// maxLine bounds a line, so that a hostile dump without line breaks can't fill
// the memory. OVN's longest flows have a few hundred kilobytes.
const maxLine = 16 << 20

// Problem is a line of a dump that can't be used.
type Problem struct {
	Line   int    // from 1
	Text   string // the line, shortened
	Reason string
	// Lost says that the dump held data here; otherwise the line was never data.
	Lost bool
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s: %q", p.Line, p.Reason, p.Text) }

func newProblem(line int, text, reason string, lost bool) *Problem {
	return &Problem{Line: line, Text: Shorten(text, 200), Reason: reason, Lost: lost}
}

// problemList keeps the first of very many problems: a dump can be a hundred
// million lines of anything.
type problemList struct {
	list []Problem
	more int // that hold data
}

const mostProblems = 10000

func (l *problemList) add(p *Problem) {
	if len(l.list) < mostProblems {
		l.list = append(l.list, *p)
	} else if p.Lost {
		l.more++
	}
}

// all are those that were kept, and one for the rest.
func (l *problemList) all() []Problem {
	if l.more == 0 {
		return l.list
	}
	last := l.list[len(l.list)-1]
	return append(l.list, Problem{Line: last.Line + 1, Reason: fmt.Sprintf("%d more lines can't be used", l.more), Lost: true})
}

// Shorten is text, or its first n bytes with an ellipsis.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}

// lines yields each line of r without its end, numbered from 1. A line beyond
// maxLine is yielded empty with tooLong set.
func lines(r io.Reader) iter.Seq2[int, line] {
	return func(yield func(int, line) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		at := int64(0)
		for n := 1; ; n++ {
			l, size, err := readLine(br)
			l.at = at
			at += int64(size)
			if err == nil || l.text != "" || l.tooLong {
				if !yield(n, l) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(n, line{err: err})
				return
			}
		}
	}
}

type line struct {
	text    string
	at      int64 // where it begins
	tooLong bool
	err     error
}

// readLine returns the next line and how many bytes it takes.
func readLine(br *bufio.Reader) (l line, size int, err error) {
	var b []byte
	for {
		part, err := br.ReadSlice('\n')
		size += len(part)
		if err == nil && b == nil && !l.tooLong { // all but the longest; a hundred million empty ones too
			l.text = string(bytes.TrimRight(part, "\r\n"))
			return l, size, nil
		}
		if len(b)+len(part) > maxLine {
			l.tooLong = true
			b = b[:0]
		} else if !l.tooLong {
			b = append(b, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.text = strings.TrimRight(string(b), "\r\n")
		return l, size, err
	}
}

// reply matches the header lines that ovs-ofctl prints above a dump.
var reply = regexp.MustCompile(`^(NXST|OFPST|NXT|OFPT)_[A-Z_]+( reply)? \((OF[0-9.]+|[^)]*)\)`)

// isHeader tells lines that are part of the format but hold no data.
func isHeader(text string) bool {
	trimmed := strings.TrimSpace(text)
	return trimmed == "" || reply.MatchString(trimmed)
}

// alarm matches what OVS's programs print when a signal ends them
// (lib/fatal-signal.c). What they had printed before that ends anywhere.
var alarm = regexp.MustCompile(`(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)?\|[0-9]{5}\|fatal_signal\|WARN\|terminating with signal`)

// readAlarm tells whether a line has one, and whether it has nothing before it.
func readAlarm(text string) (found, alone bool) {
	if !strings.Contains(text, "|fatal_signal|") {
		return false, false // a search for a pattern takes many times as long
	}
	at := alarm.FindStringIndex(text)
	return at != nil, at != nil && strings.TrimSpace(text[:at[0]]) == ""
}

// notData says why a line that is no entry is none: what the tools print in
// place of data (formats: an error text of an ovs-* tool, of timeout, of a shell).
func notData(n int, text, what string) *Problem {
	switch {
	case strings.Contains(text, "***decode error"):
		return newProblem(n, text, "ovs-ofctl could not decode the rest of the dump", true)
	case strings.Contains(text, "version negotiation failed"),
		strings.Contains(text, "none of the usable flow formats"):
		return newProblem(n, text, "the bridge did not speak this OpenFlow version", false)
	case strings.Contains(text, "ovs-ofctl:"), strings.Contains(text, "ovs-appctl:"), strings.Contains(text, "ovs-vsctl:"),
		strings.Contains(text, "|WARN|"), strings.Contains(text, "|ERR|"):
		return newProblem(n, text, "an error message, not "+what, false)
	default:
		return newProblem(n, text, "not "+what, true)
	}
}
