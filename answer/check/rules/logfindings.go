package rules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/show"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// logs lets all rules in logs/ look at the logs of a node, which are read once.
func logs() rule.Rule {
	return rule.Rule{
		Name: "logs", Severity: rule.Warning, Slow: true, Sources: []string{"the logs of the node"},
		Needs: []rule.Data{rule.Logs()},
		Node: func(ctx context.Context, n *rule.Node, found func(rule.Finding)) error {
			files, err := n.Dir.HostLogs()
			if err != nil || len(files) == 0 {
				return err
			}
			rules, err := logRules()
			if err != nil {
				return err
			}
			packages, err := n.Packages()
			if err != nil {
				return err
			}
			rules = slices.DeleteFunc(rules, func(r *logRule) bool { return !r.concerns(packages) })
			recorded, err := n.Recorded()
			if err != nil {
				return err
			}
			read, err := readLogs(ctx, n.Dir.Relative, files, rules, logOptions(recorded))
			if err != nil {
				return err
			}
			n.UnknownErrors = read.unknown
			for _, s := range read.all() {
				fine, err := s.isOver(n)
				if err != nil {
					return err
				}
				if finding, ok := s.finding(recorded, packages); ok && !fine {
					found(finding)
				}
			}
			return read.lost()
		},
	}
}

// seen is the lines that one rule has seen and that make one finding.
type seen struct {
	rule   *logRule
	values map[string]string // of the last line
	where  string            // the file and the number of the last line
	text   string            // of the last line
	count  int
	times  []time.Time // of the last lines, at most rule.Least of them
	next   int         // in times
	at     time.Time   // of the last line with which there were enough; zero for none
	noYear bool        // the year of at is not known
	enough bool
}

// add adds a line.
func (s *seen) add(line *daemonlog.Line, values map[string]string, file string) {
	s.count++
	s.values, s.where, s.text = values, fmt.Sprintf("%s, line %d", file, line.Number), string(line.Text[:min(len(line.Text), 500)])
	if len(s.times) < s.rule.Least {
		s.times = append(s.times, line.At)
	} else {
		s.times[s.next] = line.At
		s.next = (s.next + 1) % s.rule.Least
	}
	if len(s.times) < s.rule.Least {
		return
	}
	oldest := s.times[s.next%len(s.times)]
	if s.rule.within == 0 || line.At.Sub(oldest).Abs() <= s.rule.within {
		s.enough = true
		if line.At.After(s.at) {
			s.at, s.noYear = line.At, line.NoYear
		}
	}
}

// finding returns what the lines say; ok is false if there are too few, or if they are too old for a
// node that was recorded at a time. Where that time is zero, it is not known: no line is too old, and the year of lines that name
// none is not known either.
func (s *seen) finding(recorded time.Time, packages map[string]string) (finding rule.Finding, ok bool) {
	dated := !recorded.IsZero()
	if !s.enough || dated && !s.at.IsZero() && recorded.Sub(s.at) > s.rule.age {
		return finding, false
	}
	values := map[string]any{"Count": s.count, "Packages": s.rule.installed(packages)}
	for name, value := range s.values {
		values[name] = value
	}
	what, err := filled(s.rule.what, values)
	if err != nil {
		return finding, false
	}
	next, err := s.steps()
	if err != nil {
		return finding, false
	}
	at := s.at
	if s.noYear && !dated {
		at = time.Time{}
	}
	return rule.Finding{Rule: s.rule.Name, Severity: s.rule.Severity, What: what, At: at, Follows: s.rule.Follows, Next: next,
		Causes: s.rule.Causes, Sources: s.rule.Sources, Evidence: []string{s.where + ": " + s.text}}, true
}

// isOver reports whether the node's tables show that what the lines say was over when the node was recorded.
func (s *seen) isOver(n *rule.Node) (over bool, err error) {
	switch s.rule.Name {
	case "port-not-added": // the interface is gone, or has no error
		known, missing := false, false
		whole, err := eachInterface(n, func(name, number, problem, _ string) {
			if name == s.values["port"] {
				known, missing = true, number == "-1" || problem != ""
			}
		})
		return known && !missing || whole && !known, err
	case "localnet-without-bridge":
		bridges, failed := n.Bridges()
		settings, err := n.Settings()
		for network, bridge := range settings.Mappings() {
			over = over || network == s.values["network"] && slices.ContainsFunc(bridges, func(b *node.Bridge) bool { return b.Name == bridge })
		}
		return over, cmp.Or(failed, err)
	}
	return false, nil
}

// steps returns the next steps with the values of the last line, each a word where a shell reads it.
func (s *seen) steps() (steps []rule.Next, err error) {
	fill := func(text string, spelled func(string) string) string {
		values := map[string]string{}
		for name, value := range s.values {
			values[name] = spelled(value)
		}
		one, failed := s.rule.template(text)
		if failed == nil {
			text, failed = filled(one, values)
		}
		err = cmp.Or(err, failed)
		return text
	}
	for _, step := range s.rule.next {
		step.Command, step.Args = fill(step.Command, show.Word), slices.Clone(step.Args)
		for i, arg := range step.Args {
			step.Args[i] = fill(arg, strings.Clone)
		}
		steps = append(steps, step)
	}
	return steps, err
}

// filled returns the text of a template with its values.
func filled(t *template.Template, values any) (string, error) {
	var text strings.Builder
	err := t.Execute(&text, values)
	return text.String(), err
}

// readLog is what was read of the logs of a node.
type readLog struct {
	found  map[string]map[string]*seen // by the name of the rule, and by its key
	before map[string]bool             // the rules of which the line After was seen
	bad    []string                    // files that could not be read to their ends
	// unknown counts the lines of errors that no rule is about.
	unknown int

	options daemonlog.Options
}

func newReadLog() *readLog {
	return &readLog{found: map[string]map[string]*seen{}, before: map[string]bool{}}
}

// maxKeys bounds the findings of one rule on a node: a hostile log can name anything.
const maxKeys = 1000

// readLogs reads the logs of several programs side by side, and the logs of one program in order of time.
func readLogs(ctx context.Context, relative func(string) string, files []workdir.Log, rules []*logRule, options daemonlog.Options) (*readLog, error) {
	byProgram := map[string][]workdir.Log{}
	for _, file := range files {
		byProgram[file.Program] = append(byProgram[file.Program], file)
	}
	parts := make(chan *readLog, len(byProgram))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, files := range byProgram {
		group.Go(func() error {
			part := newReadLog()
			part.options = options
			defer func() { parts <- part }()
			return part.readProgram(ctx, relative, files, rules)
		})
	}
	err := group.Wait()
	close(parts)
	all := newReadLog()
	for part := range parts {
		all.merge(part)
	}
	return all, err
}

// merge adds what was read of another program.
func (l *readLog) merge(part *readLog) {
	for name, keys := range part.found {
		if l.found[name] == nil {
			l.found[name] = map[string]*seen{}
		}
		for key, s := range keys {
			if known := l.found[name][key]; known == nil || !known.enough {
				l.found[name][key] = s
			} else {
				known.count += s.count
			}
		}
	}
	l.bad, l.unknown = append(l.bad, part.bad...), l.unknown+part.unknown
}

// readProgram reads the files of one program, the oldest first.
func (l *readLog) readProgram(ctx context.Context, relative func(string) string, files []workdir.Log, rules []*logRule) error {
	first := map[string]time.Time{}
	for _, file := range files {
		at, err := l.firstTime(ctx, file)
		if err != nil {
			return err
		}
		first[file.Path] = at
	}
	slices.SortStableFunc(files, func(a, b workdir.Log) int { return first[a.Path].Compare(first[b.Path]) })
	for _, file := range files {
		if err := l.readFile(ctx, file, relative(file.Path), rules); err != nil {
			return err
		}
	}
	return nil
}

// logOptions are how all logs of a node are read, which was recorded at a time, zero for an unknown one: a node's own time zone
// is not known, and UTC is taken for it.
func logOptions(recorded time.Time) daemonlog.Options {
	return daemonlog.Options{Reference: recorded, Location: time.UTC}
}

// firstTime returns the time of the first line of a log that has one.
func (l *readLog) firstTime(ctx context.Context, file workdir.Log) (at time.Time, err error) {
	in, err := daemonlog.Open(ctx, file.Path, file.Program, l.options)
	if err != nil {
		return at, err
	}
	defer in.Close()
	for range 100 {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !line.At.IsZero() {
			return line.At, err
		}
	}
	return at, nil
}

func (l *readLog) readFile(ctx context.Context, file workdir.Log, name string, rules []*logRule) error {
	in, err := daemonlog.Open(ctx, file.Path, file.Program, l.options)
	if err != nil {
		return err
	}
	defer in.Close()
	of := rulesOf(rules)
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		l.lookAt(of[string(line.Program)], line, name)
	}
	result := in.Result()
	if result.Lost != "" {
		l.bad = append(l.bad, name+": "+result.Lost)
	}
	return nil
}

// rulesOf returns the rules by the programs of whose lines they are. Lines of a daemon of which the name is not known are of each
// rule that names modules, unless it is about the server of one database.
func rulesOf(rules []*logRule) map[string][]*logRule {
	of := map[string][]*logRule{}
	for _, r := range rules {
		for _, program := range r.Programs {
			of[program] = append(of[program], r)
		}
		oneDatabase := !slices.ContainsFunc(r.Programs, func(program string) bool { return !strings.HasPrefix(program, "ovsdb-server-") })
		if len(r.modules) > 0 && !oneDatabase {
			of[recording.UnknownDaemon] = append(of[recording.UnknownDaemon], r)
		}
	}
	return of
}

// lookAt lets rules look at a line, and counts it if it is an error that none of them knows.
func (l *readLog) lookAt(rules []*logRule, line *daemonlog.Line, file string) {
	known := false
	for _, r := range rules {
		if !r.Others || !known {
			known = l.look(r, line, file) || known
		}
	}
	if !known && line.Level >= daemonlog.Error && !line.Continues {
		l.unknown++
	}
}

// look lets a rule look at a line, and reports whether it is about it.
func (l *readLog) look(r *logRule, line *daemonlog.Line, file string) bool {
	if len(r.until) > 0 && bytes.Contains(line.Text, r.until) {
		delete(l.found, r.Name)
	}
	if len(r.after) > 0 && bytes.Contains(line.Text, r.after) {
		l.before[r.Name] = true
	}
	values, ok := r.groups(line)
	if ok = ok && (len(r.after) == 0 || l.before[r.Name]); ok {
		l.add(r, line, values, file)
	}
	return ok
}

// add adds a line to what its rule has seen.
func (l *readLog) add(r *logRule, line *daemonlog.Line, values map[string]string, file string) {
	keys := l.found[r.Name]
	if keys == nil {
		keys = map[string]*seen{}
		l.found[r.Name] = keys
	}
	key := r.key(values)
	s := keys[key]
	if s == nil {
		if len(keys) >= maxKeys {
			return
		}
		s = &seen{rule: r}
		keys[key] = s
	}
	s.add(line, values, file)
}

// all returns what was seen, in the order of the rules' names.
func (l *readLog) all() (list []*seen) {
	for _, keys := range l.found {
		for _, s := range keys {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *seen) int {
		return cmp.Or(cmp.Compare(a.rule.Name, b.rule.Name), cmp.Compare(a.where, b.where))
	})
	return list
}

// lost returns an error that names the files that could not be read to their ends.
func (l *readLog) lost() error {
	if len(l.bad) == 0 {
		return nil
	}
	return fmt.Errorf("these logs could not be read to their ends: %s", strings.Join(l.bad, "; "))
}
