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
	"sync"

	"golang.org/x/sync/errgroup"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/collect"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/test/generate/tickets"
	"ovs-offline/workdir"
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
	missing string // what a verdict needs, of an UNDETERMINED one, and of another one what a copy of the packet needs
	err     string
}

// ticket is the text of a node in a form, and what was collected of it.
type ticket struct {
	form    tickets.Form
	folder  string   // of the workdir, or of the workdirs
	losses  []string // that collect named
	refusal string
	key     string // the same for tickets of which the same was collected
}

// collected collects the text of a ticket into a folder, as cmd does.
func collected(ctx context.Context, folder string, w *whole, f tickets.Form, text string) (ticket, error) {
	made := ticket{form: f, folder: filepath.Join(folder, "wd")}
	path := filepath.Join(folder, "ticket.md")
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		return made, err
	}
	wd, err := workdir.Lock(made.folder)
	if err != nil {
		return made, err
	}
	written, found, err := collect.Collect(ctx, wd, collect.Files{Paths: []string{path}}, collect.Options{})
	wd.Unlock()
	if err != nil {
		made.refusal = err.Error()
		return made, nil
	}
	made.losses = slices.Clone(found.Lost)
	for _, node := range written {
		for _, c := range node.Collections {
			made.losses = append(made.losses, c.Lost...)
		}
	}
	made.key, err = keyOf(made.folder, w)
	return made, err
}

// atOnce is how many replicas start and answer at once: they wait more than they work.
const atOnce = 4

// sayings asks the replicas of tickets, and returns what they say by the keys. Tickets of which the same was collected
// share a replica.
func sayings(ctx context.Context, w *whole, made []ticket) (map[string]said, error) {
	first := map[string]ticket{}
	for _, t := range made {
		if _, known := first[t.key]; !known && t.refusal == "" {
			first[t.key] = t
		}
	}
	var mu sync.Mutex
	all := map[string]said{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for key, t := range first {
		group.Go(func() error {
			s, err := ask(ctx, t.folder, w)
			mu.Lock()
			defer mu.Unlock()
			all[key] = s
			if err != nil {
				return fmt.Errorf("%s/%s: %w", t.form.Kind, t.form.Name, err)
			}
			return nil
		})
	}
	return all, group.Wait()
}

// incidental matches what differs between two collections of the same data.
var incidental = regexp.MustCompile(`"collected": "[^"]*"|, line \d+|[^" ]*/ticket\.md`)

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
	started := nodes.Start(ctx, func(*snapshot.Node) set.StartOptions {
		return set.StartOptions{Runtime: "process", Chosen: func(string) {}, Starting: func(string) {},
			Progress: func(string) {}}
	}, func(*snapshot.Node, string) {})
	defer func() {
		for _, o := range nodes.Stop(context.WithoutCancel(ctx), false) {
			err = errors.Join(err, o.Err)
		}
	}()
	for _, failure := range snapshot.Failures(nodes.Snapshot, started) {
		s.losses = append(s.losses, failure.Error())
	}
	for _, o := range snapshot.Values(started) {
		s.losses = append(s.losses, lossesOf(o.Value)...)
	}
	session, err := trace.OpenSet(ctx, nodes.Snapshot, trace.Options{})
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
		r.missing = strings.Join(append(a.Missing, unknownEnds(a)...), "; ")
		s.answers[p.flow] = r
	}
	return s, nil
}

// unknownEnds returns why it is not known what becomes of copies of a packet.
func unknownEnds(a *answer.Answer) (list []string) {
	for _, hop := range a.Path {
		for _, end := range hop.Ends {
			if end.Kind == answer.Unknown {
				list = append(list, end.Text)
			}
		}
	}
	return list
}

// isPartOf reports whether an end has the verdict of another one and no place that the other one has not.
func isPartOf(end, other string) bool {
	verdict, places, _ := strings.Cut(end, " ")
	whole, all, _ := strings.Cut(other, " ")
	known := strings.Split(all, ", ")
	return verdict == whole && !slices.ContainsFunc(strings.Split(places, ", "),
		func(place string) bool { return !slices.Contains(known, place) })
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
func judge(t ticket, w *whole, s said) judged {
	if refusal := t.refusal + s.refusal; refusal != "" {
		return judged{refused, refusal}
	}
	losses := strings.Join(append(t.losses, s.losses...), "; ")
	worst := judged{outcome: right}
	for _, p := range w.packets {
		if j := judgePacket(causes(t.form, w), p, s.answers[p.flow], losses); j.outcome > worst.outcome {
			worst = j
		}
	}
	return worst
}

// causes returns the true causes of an UNDETERMINED answer as a regular expression: what the form lacks, and what no
// ticket of the node has.
func causes(f tickets.Form, w *whole) string {
	if f.Whole() || !w.namesAlike() {
		return f.Lacks
	}
	return f.Lacks + "|whose name and type were not recorded"
}

func judgePacket(lacks string, p packet, r reply, losses string) judged {
	why := fmt.Sprintf("%s: %s%s, want %s", p.flow, r.end, r.err, p.end)
	switch {
	case r.err != "":
		return judged{refused, why + " (losses: " + losses + ")"}
	case r.end == p.end:
		return judged{outcome: right}
	case strings.HasPrefix(r.end, string(answer.Undetermined)) && names(lacks, r.missing):
		return judged{undetermined, why + " because: " + r.missing}
	case isPartOf(r.end, p.end) && names(lacks, r.missing):
		return judged{undetermined, why + " because of a copy: " + r.missing}
	case strings.HasPrefix(r.end, string(answer.Undetermined)):
		return judged{uncaused, why + " because: " + r.missing}
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
