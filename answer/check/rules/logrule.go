package rules

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"sigs.k8s.io/yaml"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/daemonlog"
)

//go:embed logs/*.yaml
var logFiles embed.FS

// logRule is a rule about lines of logs: one file in logs/.
type logRule struct {
	Name     string
	Severity rule.Severity
	// What is a text/template of the sentence, and so is each of Next. It has the named groups of Match, Count (how many
	// lines) and Packages (the ones that Installed names, with their versions).
	What    string
	Follows string
	Next    []string
	Sources []string
	Causes  []string // as in rule.Finding

	// Level is the least level of the lines, "" for any. Others says that the rule is only about lines that no other rule is about.
	Level  string
	Others bool
	// Programs wrote the line. Modules are modules of vlog or loggers of OpenStack's services; empty
	// for any. Contains is a part of the message, and Match a regular expression for it.
	Programs []string
	Modules  []string
	Contains string
	Match    string
	// Each names the groups of Match of which each value is a finding of its own.
	Each []string
	// After is a part of a line that was there before, and Until a part of a later line that ends the
	// fault: what was seen until then does not count.
	After, Until string
	// Least is how many lines there have to be within the time Within, 1 for none. Lines that are
	// older than Age when the node was recorded do not count; "" stands for 7 days.
	Least       int
	Within, Age string
	// Installed lists packages of Debian, of which one has to be installed; Absent lists packages
	// of which none may be.
	Installed []packageRange
	Absent    []string

	// Finds and Ignores are lines for the test of the rule.
	Finds, Ignores []string

	pattern     *regexp.Regexp
	what        *template.Template
	next        []rule.Next // with templates
	contains    []byte
	after       []byte
	until       []byte
	modules     [][]byte
	within, age time.Duration
	level       daemonlog.Level
}

// usualAge is the age of the oldest lines that count.
const usualAge = 7 * 24 * time.Hour

// logRules reads the rules in logs/.
func logRules() ([]*logRule, error) {
	names, err := fs.Glob(logFiles, "logs/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*logRule
	for _, name := range names {
		text, err := logFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		one := &logRule{Name: strings.TrimSuffix(path.Base(name), ".yaml")}
		if err := yaml.UnmarshalStrict(text, one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := one.compile(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	last := func(r *logRule) int { return map[bool]int{true: 1}[r.Others] }
	slices.SortStableFunc(all, func(a, b *logRule) int { return last(a) - last(b) })
	return all, nil
}

func (r *logRule) compile() (err error) {
	r.contains, r.after, r.until = []byte(r.Contains), []byte(r.After), []byte(r.Until)
	r.Least, r.age = max(r.Least, 1), usualAge
	for _, module := range r.Modules {
		r.modules = append(r.modules, []byte(module))
	}
	if r.Match != "" {
		if r.pattern, err = regexp.Compile(r.Match); err != nil {
			return err
		}
	}
	if r.what, err = r.template(r.What); err != nil {
		return err
	}
	if r.next, err = parseNext(r.Next); err != nil {
		return err
	}
	if level, ok := daemonlog.ParseLevel(r.Level); ok || r.Level == "" {
		r.level = level
	} else {
		return fmt.Errorf("no level %q", r.Level)
	}
	for text, to := range map[string]*time.Duration{r.Within: &r.within, r.Age: &r.age} {
		if text != "" {
			if *to, err = time.ParseDuration(text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *logRule) template(text string) (*template.Template, error) {
	return template.New(r.Name).Option("missingkey=error").Parse(strings.TrimSpace(text))
}

// groups returns the named groups of a line that the rule is about; ok is false for another line.
func (r *logRule) groups(line *daemonlog.Line) (values map[string]string, ok bool) {
	if len(r.modules) > 0 && !slices.ContainsFunc(r.modules, func(module []byte) bool { return bytes.Equal(module, line.Module) }) {
		return nil, false
	}
	if line.Level < r.level || !bytes.Contains(line.Text, r.contains) {
		return nil, false
	}
	if r.pattern == nil {
		return nil, true
	}
	found := r.pattern.FindSubmatch(line.Text)
	if found == nil {
		return nil, false
	}
	values = map[string]string{}
	for i, name := range r.pattern.SubexpNames() {
		if name != "" {
			values[name] = string(found[i])
		}
	}
	return values, true
}

// key returns what tells the findings of the rule apart.
func (r *logRule) key(values map[string]string) string {
	var parts []string
	for _, name := range r.Each {
		parts = append(parts, values[name])
	}
	return strings.Join(parts, "\x00")
}
