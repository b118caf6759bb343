package rules

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	stepLine   = regexp.MustCompile(`^ *([0-9]+)\. (.*), priority ([0-9]+), cookie (0x[0-9a-f]+)$`)
	missLine   = regexp.MustCompile(`^ *([0-9]+)\. No match`)
	actionLine = regexp.MustCompile(`^Datapath actions: (.*)`)
	inMetadata = regexp.MustCompile(`(?:^|,)metadata=(0x[0-9a-f]+)`)
)

// endOf reads the last part of a trace that ofproto/trace printed of the integration
// bridge: the part that ends with the last line of datapath actions, which it returns.
func endOf(tb testing.TB, l loaded, trace string) (end End, actions string) {
	tb.Helper()
	end.Layout = l.flows[0].Layout
	bridge := ""
	for line := range strings.Lines(trace) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "bridge("):
			bridge = line
		case strings.HasPrefix(line, "====="):
			end.Steps, end.Miss = nil, false
		}
		if m := actionLine.FindStringSubmatch(line); m != nil {
			actions = m[1]
		}
		if bridge != `bridge("br-int")` {
			continue
		}
		if m := missLine.FindStringSubmatch(line); m != nil {
			end.MissTable, _ = strconv.Atoi(m[1])
			end.Miss = true
		}
		m := stepLine.FindStringSubmatch(line)
		if m == nil {
			if len(end.Steps) > 0 && !end.Miss {
				end.Steps[len(end.Steps)-1].Actions += line + "\n"
			}
			continue
		}
		end.Miss = false
		f := Flow{Layout: end.Layout}
		f.Table, _ = strconv.Atoi(m[1])
		f.Priority, _ = strconv.Atoi(m[3])
		f.Cookie, _ = strconv.ParseUint(m[4], 0, 64)
		if key := inMetadata.FindStringSubmatch(m[2]); key != nil {
			f.Metadata, _ = strconv.ParseUint(key[1], 0, 64)
			end.Metadata = f.Metadata
		}
		rule, ok, err := l.rules.Find(f)
		if err != nil || !ok && f.Cookie != 0xdeff105 { // a flow of another bridge that the packet goes through
			tb.Errorf("flow %s: %v", line, err)
		}
		end.Steps = append(end.Steps, Step{Table: f.Table, Rule: rule})
	}
	return end, actions
}
