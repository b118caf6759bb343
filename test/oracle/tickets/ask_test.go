package tickets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/collect"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/test/generate/tickets"
)

// Outcome is what becomes of a ticket, from good to bad.
type outcome int

const (
	right        outcome = iota // every packet ends as on the whole node
	undetermined                // some are UNDETERMINED, with the cause that the form has
	refused                     // no answer, and the reason is named
	uncaused                    // UNDETERMINED without the cause
	misled                      // a wrong answer, after a loss was named (exit 3)
	silent                      // a wrong answer, without a word
)

// outcomes names the outcomes in their order.
func outcomes() []string {
	return []string{"right", "undetermined", "refused", "uncaused", "misled", "SILENT"}
}

// said is what the product says about a collected ticket.
type said struct {
	losses  []string // that collect or start named
	refusal string   // why there is no answer at all, "" if there are answers
	answers map[string]reply
}

// reply is the answer to the question about a packet.
type reply struct {
	end     string
	missing string // what a verdict needs, of an UNDETERMINED one
	err     string
}

// asker collects tickets and asks their replicas. Tickets of which the same was collected share the answers.
type asker struct {
	dir   string // for workdirs
	known map[string]said
}

// say collects the text of a ticket, starts what it has, and asks for each packet of the node, as cmd does.
func (a *asker) say(ctx context.Context, number int, w *whole, text string) (said, error) {
	folder := filepath.Join(a.dir, fmt.Sprint(number))
	path := filepath.Join(a.dir, "ticket.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return said{}, err
	}
	defer os.RemoveAll(folder)
	wd, err := workdir.Lock(folder)
	if err != nil {
		return said{}, err
	}
	written, found, err := collect.Collect(ctx, wd, collect.Files{Paths: []string{path}}, collect.Options{})
	wd.Unlock()
	if err != nil {
		return said{refusal: err.Error()}, nil
	}
	losses := slices.Clone(found.Lost)
	for _, node := range written {
		for _, c := range node.Collections {
			losses = append(losses, c.Lost...)
		}
	}
	key, err := keyOf(folder, w)
	if err != nil {
		return said{}, err
	}
	s, ok := a.known[key]
	if !ok {
		if s, err = ask(ctx, folder, w); err != nil {
			return said{}, err
		}
		a.known[key] = s
	}
	s.losses = append(losses, s.losses...)
	return s, nil
}

// incidental matches what differs between two collections of the same data.
var incidental = regexp.MustCompile(`"collected": "[^"]*"|, line \d+|"name": "[^"]*ticket\.md"|"origin": "[^"]*"`)

// keyOf returns a hash of what was collected into a folder, and of the questions.
func keyOf(folder string, w *whole) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, w.packets)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if e.Name() == "manifest.json" {
			text = incidental.ReplaceAll(text, nil)
		}
		fmt.Fprintf(h, "%s %x\n", strings.TrimPrefix(path, folder), sha256.Sum256(text))
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// ask starts the nodes in a folder, and asks for the packets.
func ask(ctx context.Context, folder string, w *whole) (s said, err error) {
	nodes, err := set.OpenNodes(folder, "test", nil)
	if err != nil {
		return said{}, err
	}
	started := nodes.Start(ctx, func(*set.Node) set.StartOptions {
		return set.StartOptions{Runtime: "process", Chosen: func(string) {}, Starting: func(string) {}, Progress: func(string) {}}
	}, func(*set.Node, string) {})
	defer func() {
		for _, o := range nodes.Stop(context.WithoutCancel(ctx), false) {
			err = errors.Join(err, o.Err)
		}
	}()
	for _, failure := range set.Failures(nodes, started) {
		s.losses = append(s.losses, failure.Error())
	}
	for _, o := range set.Values(started) {
		s.losses = append(s.losses, lossesOf(o.Value)...)
	}
	session, err := trace.OpenSet(ctx, nodes, trace.Options{})
	if err != nil {
		s.refusal = err.Error()
		return s, nil
	}
	defer session.Close()
	s.answers = map[string]reply{}
	for _, p := range w.packets {
		node := ""
		if !nodes.Alone() {
			node = w.Name
		}
		a, err := session.Flow(ctx, node, p.flow, 0)
		if err != nil {
			s.answers[p.flow] = reply{err: err.Error()}
			continue
		}
		r := reply{end: endOf(a)}
		if a.Verdict == answer.Undetermined {
			r.missing = strings.Join(a.Missing, "; ")
		}
		s.answers[p.flow] = r
	}
	return s, nil
}

// lossesOf returns what a start names as not restored, for which it exits with code 3.
func lossesOf(r *report.Report) []string {
	if r.Complete() {
		return nil
	}
	return []string{r.Sentence()}
}

// judged is the outcome of a ticket, with what was wrong.
type judged struct {
	outcome
	why string
}

// judge compares what was said with the truth. The worst answer decides.
func judge(f tickets.Form, w *whole, s said) judged {
	if s.refusal != "" {
		return judged{refused, s.refusal}
	}
	worst := judged{outcome: right}
	for _, p := range w.packets {
		if j := judgePacket(f, p, s); j.outcome > worst.outcome {
			worst = j
		}
	}
	return worst
}

func judgePacket(f tickets.Form, p packet, s said) judged {
	r := s.answers[p.flow]
	losses := strings.Join(s.losses, "; ")
	why := fmt.Sprintf("%s: %s%s, want %s", p.flow, r.end, r.err, p.end)
	switch {
	case r.err != "":
		return judged{refused, why + " (losses: " + losses + ")"}
	case r.end == p.end:
		return judged{outcome: right}
	case strings.HasPrefix(r.end, string(answer.Undetermined)):
		if !names(f.Lacks, r.missing) {
			return judged{uncaused, why + " because: " + r.missing}
		}
		return judged{undetermined, why + " because: " + r.missing}
	case losses != "":
		return judged{misled, why + " (losses: " + losses + ")"}
	}
	return judged{silent, why}
}

// names reports whether a text names one of the causes, which are a regular expression; "" for any.
func names(causes, text string) bool {
	ok, err := regexp.MatchString("(?i)"+causes, text)
	return err == nil && ok && text != ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
