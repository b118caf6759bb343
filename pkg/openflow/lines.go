// Package openflow reads the text that ovs-ofctl prints (flows, groups, meters,
// TLV maps, bridge descriptions) and the script that ovs-save writes. It parses
// just enough to remove statistics, to rewrite what ovs-ofctl cannot read back,
// and to compare entries. It opens no files and talks to no switch.
package openflow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
)

// maxLine bounds a line in bytes, so that a hostile dump without line breaks cannot
// exhaust memory. OVN's longest flows have a few hundred kilobytes.
const maxLine = 16 << 20

// Problem is a line of a dump that cannot be used.
type Problem struct {
	Line   int    // from 1
	Text   string // the line, shortened
	Reason string
	Lost   bool // the line held an entry or a part of one, which is lost
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s: %q", p.Line, p.Reason, p.Text) }

func newProblem(line int, text, reason string, lost bool) *Problem {
	return &Problem{Line: line, Text: phrase.Shorten(text, 200), Reason: reason, Lost: lost}
}

// problemList keeps the first maxProblems problems and counts the others: a
// hostile dump can have a hundred million of them.
type problemList struct {
	list []Problem
	more int // further problems with Lost set
}

const maxProblems = 10000

func (l *problemList) add(p *Problem) {
	if len(l.list) < maxProblems {
		l.list = append(l.list, *p)
	} else if p.Lost {
		l.more++
	}
}

// all returns the problems that were kept, and one that counts the others.
func (l *problemList) all() []Problem {
	if l.more == 0 {
		return l.list
	}
	last := l.list[len(l.list)-1]
	return append(l.list, Problem{Line: last.Line + 1, Reason: fmt.Sprintf("%d more lines can't be used", l.more), Lost: true})
}

// line is one line of a text, without its end.
type line struct {
	text    string
	at      int64 // its offset
	tooLong bool  // it exceeds maxLine; text is empty
	open    bool  // the text ends here without the end of the line
	err     error // reading failed here; text is empty
}

// lines yields each line of r, numbered from 1.
func lines(r io.Reader) iter.Seq2[int, line] { return linesBy(r, 64<<10) }

// linesBy works like lines, and reads size bytes at a time. The lines of one read share
// one string, because a string for each line would cost more than everything else done
// with the line.
func linesBy(r io.Reader, size int) iter.Seq2[int, line] {
	return func(yield func(int, line) bool) {
		buf := make([]byte, 0, size)
		at, n := int64(0), 1
		tooLong := false // the line at the start of buf is too long, and its beginning was dropped
		for {
			if len(buf) == cap(buf) {
				buf = slices.Grow(buf, cap(buf))
			}
			count, err := r.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+count]
			end := len(buf)
			if err == nil {
				end = bytes.LastIndexByte(buf, '\n') + 1
			}
			block := string(buf[:end])
			for block != "" {
				text, rest, ended := strings.Cut(block, "\n")
				l := line{text: strings.TrimRight(text, "\r"), at: at, open: !ended}
				if tooLong || len(text) > maxLine {
					l.text, l.tooLong = "", true
				}
				if !yield(n, l) {
					return
				}
				at += int64(len(block) - len(rest))
				block, n, tooLong = rest, n+1, false
			}
			buf = append(buf[:0], buf[end:]...)
			if len(buf) > maxLine {
				at, buf, tooLong = at+int64(len(buf)), buf[:0], true
			}
			if err == nil {
				continue
			}
			if tooLong && !yield(n, line{at: at, tooLong: true}) || errors.Is(err, io.EOF) {
				return
			}
			yield(n, line{err: err})
			return
		}
	}
}

// replyHeader matches the lines that ovs-ofctl prints above a dump:
// "OFPST_FLOW reply (OF1.3) (xid=0x2):".
var replyHeader = lazyregexp.New(`^(NXST|OFPST|NXT|OFPT)_[A-Z_]+( reply)? \((OF[0-9.]+|[^)]*)\)`)

// isHeader reports whether a line is part of the format and holds no data.
func isHeader(text string) bool {
	trimmed := strings.TrimSpace(text)
	// The first letter decides for nearly all lines, a hundred times as fast as the
	// pattern.
	return trimmed == "" || (trimmed[0] == 'N' || trimmed[0] == 'O') && replyHeader.MatchString(trimmed)
}

// ending finds out whether the end of a dump is there: ovs-ofctl prints flags=[more] in the header of each part of a reply but the last
// (OFPSF_REPLY_MORE of the OpenFlow specification), and ends each line.
type ending struct {
	line   int
	last   line   // the last line
	header string // of the last part; "" for none
	begins int    // the line of the header
	known  bool   // a problem of the last part tells already that it is not whole
}

// see takes the next line of a dump.
func (e *ending) see(n int, l line) {
	e.line, e.last = n, l
	if trimmed := strings.TrimSpace(l.text); trimmed != "" && isHeader(trimmed) {
		e.header, e.begins, e.known = trimmed, n, false
	}
}

// cut returns the problem of a dump whose end is not there; nil for a whole one.
func (e *ending) cut() *Problem {
	switch {
	case e.known || e.header == "":
		return nil
	case strings.Contains(e.header, "flags=[more]"):
		return newProblem(e.line, e.header, "the end of the dump was cut off, because more was to follow", true)
	case e.last.open:
		return newProblem(e.line, e.last.text, "its end may have been cut off, because it has no line break: add one if it is whole", true)
	}
	return nil
}

// fatalSignal matches what OVS's programs print when a signal ends them
// (lib/fatal-signal.c). The output before it may end anywhere.
var fatalSignal = lazyregexp.New(`(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)?\|[0-9]{5}\|fatal_signal\|WARN\|terminating with signal`)

// readFatalSignal reports whether a line holds such a message, and whether
// nothing precedes the message.
func readFatalSignal(text string) (found, alone bool) {
	at := find(fatalSignal, "|fatal_signal|", text)
	return at != nil, at != nil && strings.HasPrefix(strings.TrimSpace(text), at[0])
}

// find returns what a pattern and its groups match, nil for no match. It searches for a
// word of the pattern first, which is many times faster than the pattern.
func find(pattern *lazyregexp.Regexp, word, text string) []string {
	if !strings.Contains(text, word) {
		return nil
	}
	return pattern.FindStringSubmatch(text)
}

// notEntry returns the problem of a line that is not an entry: a message that a
// program printed in place of data, or data that was lost.
func notEntry(n int, text, what string) *Problem {
	switch {
	case strings.Contains(text, decodeError):
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

// decodeError is what ovs-ofctl prints in place of the rest of a dump that it
// cannot decode.
const decodeError = "***decode error"

// HasError reports whether a text is an error message in place of data, judging by its
// first line that is not a header.
func HasError(r io.Reader) bool {
	for _, l := range lines(io.LimitReader(r, 64<<10)) {
		if !isHeader(l.text) {
			return l.err == nil && !notEntry(1, l.text, "").Lost
		}
	}
	return false
}
