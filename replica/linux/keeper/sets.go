//go:build linux

package keeper

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/phrase"
	"ovs-offline/replica/report"
)

// maxSetLines bounds the sets of ipset and their entries, of one namespace.
const maxSetLines = 500000

// savedSet is a line of what "ipset save" printed.
type savedSet struct {
	text, set string
	create    bool
}

// restoreSets restores what "ipset save" printed. The report counts sets with their entries.
func (s *space) restoreSets(ctx context.Context) {
	if s.recorded.Sets == "" {
		return
	}
	recorded, err := s.readSets(s.recorded.Sets)
	if err != nil {
		s.report.Remark("ipset: %v", err)
	}
	if len(recorded) == 0 {
		return
	}
	if s.tools.ipset == "" {
		s.report.RejectUnnamed(report.Sets, len(recorded), "ipset is not installed: it is in the package ipset")
		return
	}
	if module := s.kernel.missing("ip_set", "nfnetlink"); module != "" {
		s.report.RejectUnnamed(report.Sets, len(recorded), "the kernel of this machine has not loaded what sets need: sudo modprobe %s", module)
		return
	}
	s.compareSets(ctx, s.loadSets(ctx, recorded))
}

var (
	setName  = lazyregexp.New(`^[A-Za-z0-9_.:+@%/!?&=~-]{1,31}$`)
	setType  = lazyregexp.New(`^(hash|bitmap|list):[a-z,]+$`)
	changing = lazyregexp.New(` (timeout|packets|bytes|initval|bucketsize|hashsize) (0x[0-9a-f]+|[0-9]+)`)
)

// readSets reads the sets through the gate.
func (s *space) readSets(path string) (list []savedSet, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	cut := 0
	var large []string         // sets that were recorded with more buckets than are made
	timed := map[string]bool{} // sets whose entries expire
	_, err = lines.Read(file, func(raw []byte) error {
		words := strings.Fields(string(raw[:min(len(raw), 2000)]))
		if len(words) == 0 {
			return nil
		}
		s.report.Record(report.Sets, 1)
		if len(list) == maxSetLines {
			cut++
			return nil
		}
		one := savedSet{text: strings.Join(words, " "), create: words[0] == "create"}
		reason := s.badSet(words)
		if reason == "" && one.create && limitHashSize(words) {
			large = append(large, words[1])
			one.text = strings.Join(words, " ")
		}
		if reason == "" && !s.kernel.take(setMemory(words)) {
			reason = overMemory
		}
		if reason != "" {
			s.report.Reject(report.Sets, one.text, "%s", reason)
			return nil
		}
		one.set = words[1]
		if one.create && slices.Contains(words, "timeout") {
			timed[one.set] = true
		}
		if !one.create && timed[one.set] { // an entry stays, however long ago it was recorded
			one.text = changing.ReplaceAllString(one.text, "") + " timeout 0"
		}
		list = append(list, one)
		return nil
	})
	s.report.RejectUnnamed(report.Sets, cut, "only the first %d lines of ipset are restored", maxSetLines)
	if len(large) > 0 {
		s.report.Remark("ipset: %s begin with hashsize %d instead of more: %s", phrase.Count(len(large), "set"), maxHashSize, phrase.FirstNames(large))
	}
	return list, err
}

// badSet returns why a line of "ipset save" is not restored, "" if it is.
func (s *space) badSet(words []string) string {
	switch {
	case len(words) < 3 || words[0] != "create" && words[0] != "add" || !setName.MatchString(words[1]) || strings.HasPrefix(words[1], "-"):
		return "it is no line of ipset save"
	case slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") }):
		return "it has an option of the program"
	case words[0] == "create" && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, `"`) }):
		return "it is no line of ipset save"
	case words[0] == "create" && !setType.MatchString(words[2]):
		return "sets of this type are not restored"
	case words[0] == "create":
		if module := s.kernel.missing("ip_set_" + strings.NewReplacer(":", "_", ",", "").Replace(words[2])); module != "" {
			return "the kernel of this machine has not loaded what it needs: sudo modprobe " + module
		}
	}
	return ""
}

// setLine matches how ipset names a line.
var setLine = lazyregexp.New(`Error in line (\d+): (.*)`)

// loadSets loads the sets, and loads them again without the refused lines. It returns the sets that were loaded.
func (s *space) loadSets(ctx context.Context, recorded []savedSet) []savedSet {
	for range maxRuns {
		var input bytes.Buffer
		for _, one := range recorded {
			input.WriteString(one.text + "\n")
		}
		_, err := s.run(ctx, input.Bytes(), s.tools.ipset, "-exist", "restore")
		if err == nil {
			return recorded
		}
		found := setLine.FindStringSubmatch(stderrOf(err))
		n := 0
		if found != nil {
			n, _ = strconv.Atoi(found[1])
		}
		if n < 1 || n > len(recorded) || ctx.Err() != nil {
			s.report.RejectUnnamed(report.Sets, len(recorded), "ipset: %s", reasonOf(err))
			return nil
		}
		bad := recorded[n-1]
		recorded = slices.DeleteFunc(recorded, func(one savedSet) bool {
			refused := one.text == bad.text || bad.create && one.set == bad.set
			if refused {
				s.report.Reject(report.Sets, one.text, "%s", found[2])
			}
			return refused
		})
	}
	s.report.RejectUnnamed(report.Sets, len(recorded), "ipset refused lines %d times: the last reason is above", maxRuns)
	return nil
}

// compareSets reads the sets back.
func (s *space) compareSets(ctx context.Context, recorded []savedSet) {
	if len(recorded) == 0 {
		return
	}
	out, err := s.run(ctx, nil, s.tools.ipset, "save")
	if err != nil {
		s.report.RejectUnnamed(report.Sets, len(recorded), "the sets can't be read back: %s", reasonOf(err))
		return
	}
	squeeze := func(text string) string {
		return strings.Join(strings.Fields(changing.ReplaceAllString(text+" ", " ")), " ")
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		found[squeeze(line)] = true
	}
	for _, one := range recorded {
		if found[squeeze(one.text)] {
			s.report.Restore(report.Sets, 1)
		} else {
			s.report.Differ(report.Sets, one.text, "it is read back differently")
		}
	}
}
