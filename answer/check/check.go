// Package check says what is wrong on nodes: it lets every rule look at what was collected, and sorts
// what they find.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"ovs-offline/answer/check/rules"
	"ovs-offline/answer/rule"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Options are the options of Run.
type Options struct {
	Programs rule.Programs
	// Found takes each finding as soon as it is found, from one rule at a time; nil for none.
	Found func(rule.Finding)
	// Progress takes what is being done; nil for none.
	Progress func(text string)
}

// Report is what a check found.
type Report struct {
	Findings []rule.Finding `json:"findings"` // the worst first
	// Unjudged lists what could not be judged, with the reason.
	Unjudged []string `json:"unjudged,omitempty"`
	// Remarks are sentences about the databases.
	Remarks []string `json:"remarks,omitempty"`
	Nodes   int      `json:"nodes"`
	Rules   int      `json:"rules"`
	Judged  int      `json:"judged"` // the rules that had data to look at
	// Missing lists what the other rules had needed, what most of them needed first.
	Missing []Missing `json:"missing,omitempty"`
	// UnknownErrors is the number of lines of errors in logs that no rule is about.
	UnknownErrors int `json:"unknown_errors,omitempty"`

	judged map[string]bool // the names of the rules that had data, and looked at all of it
}

// HasJudged reports whether the rule of a name had data to look at, and could judge all of it.
func (r *Report) HasJudged(name string) bool { return r.judged[name] }

// Missing is data that was not collected.
type Missing struct {
	Data  string `json:"data"`
	Rules int    `json:"rules"` // which looked at nothing without it
}

// Run lets every rule look at the nodes of a set. No replica needs to run.
func Run(ctx context.Context, selected *snapshot.Snapshot, options Options) (*Report, error) {
	selected, bad, err := usable(ctx, selected)
	if err != nil {
		return nil, err
	}
	deployments, remarks, err := selected.Deployments(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.CloseAll(deployments)
	files, err := filesOf(deployments)
	if err != nil {
		return nil, err
	}
	if err := openPrinted(ctx, deployments); err != nil {
		return nil, err
	}
	c := rule.Of(deployments, options.Programs)
	all := rules.All()
	run := &run{options: options, files: files, report: &Report{Findings: []rule.Finding{}, Unjudged: bad, Remarks: append(selected.Remarks(), remarks...), Nodes: len(c.Nodes()), Rules: len(all), judged: map[string]bool{}}}
	if err := run.report.count(c, all); err != nil {
		return nil, err
	}
	fast, slow := all, []rule.Rule(nil)
	if i := slices.IndexFunc(all, func(r rule.Rule) bool { return r.Slow }); i >= 0 {
		fast, slow = all[:i], all[i:]
	}
	// Slow rules read much, and do so one after the other, so that memory is bounded.
	for _, stage := range []struct {
		rules  []rule.Rule
		atOnce int
	}{{fast, 2}, {slow, 1}} {
		if err := run.stage(ctx, c, stage.rules, stage.atOnce); err != nil {
			return nil, err
		}
	}
	for _, n := range c.Nodes() {
		run.report.UnknownErrors += n.UnknownErrors
	}
	run.report.Findings = rule.Explain(fold(run.report.Findings))
	slices.Sort(run.report.Unjudged)
	return run.report, nil
}

// run collects what the rules find.
type run struct {
	options Options
	files   map[string]bool // of what filesOf found
	mu      sync.Mutex
	report  *Report
}

// filesOf returns what was collected as a file: "nb" and "sb" somewhere, and "conf", the database of Open vSwitch, and "flows" of each node by
// its name.
func filesOf(deployments []*snapshot.Deployment) (map[string]bool, error) {
	files := map[string]bool{}
	for _, d := range deployments {
		files["nb"], files["sb"] = files["nb"] || d.NB != nil, files["sb"] || d.SB != nil
		for _, n := range d.Nodes {
			bridges, err := n.Dir.DumpedBridges(workdir.Flows)
			if err != nil {
				return nil, err
			}
			files["conf "+n.Name], files["flows "+n.Name] = n.OVS != nil, len(bridges) > 0
			files["flows "] = files["flows "] || len(bridges) > 0
		}
	}
	return files, nil
}

// lacks reports whether a step reads a file that was not collected.
func (r *run) lacks(step rule.Next) bool {
	switch args := append(step.Args, "", ""); {
	case args[0] == "history" && (args[1] == "nb" || args[1] == "sb"):
		return !r.files[args[1]]
	case args[0] == "history" && args[1] == "conf":
		return !r.files["conf "+step.Node]
	case args[0] == "flows" && args[1] != "--datapath", args[0] == "top":
		return !r.files["flows "+step.Node]
	}
	return false
}

// stage lets rules look, some of them at once.
func (r *run) stage(ctx context.Context, c *rule.Case, rules []rule.Rule, atOnce int) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range rules {
		group.Go(func() error { return r.look(ctx, c, &rules[i]) })
	}
	return group.Wait()
}

// look lets one rule look at everything. A rule that fails costs its own findings.
func (r *run) look(ctx context.Context, c *rule.Case, one *rule.Rule) error {
	if r.options.Progress != nil && one.Slow {
		r.options.Progress(one.Name)
	}
	if one.Case != nil {
		if known := c.Knowing(one); len(known.Deployments) > 0 {
			r.note(one, "", one.Case(ctx, known, r.taking(one, nil)))
		}
	}
	for _, d := range c.Deployments {
		zone := zoneOf(c, d)
		if one.Deployment != nil && d.Knows(one, d.Nodes...) {
			r.note(one, "", one.Deployment(ctx, d, r.taking(one, zone, zone...)))
			r.noteSome(one, "", one.OnlySome(d))
		}
		for _, n := range d.Nodes {
			if one.Node != nil && d.Knows(one, n) {
				r.note(one, n.Name, one.Node(ctx, n, r.taking(one, zone, n.Name)))
				r.noteSome(one, n.Name, one.OnlySomeOf(n))
			}
		}
	}
	return ctx.Err()
}

// zoneOf returns the names of the nodes of a deployment where there are several: with OVN interconnect,
// each zone is one.
func zoneOf(c *rule.Case, d *rule.Deployment) (names []string) {
	if len(c.Deployments) > 1 {
		for _, n := range d.Nodes {
			names = append(names, n.Name)
		}
	}
	return names
}

// taking returns the function that takes the findings of a rule on nodes of a zone.
func (r *run) taking(one *rule.Rule, zone []string, nodes ...string) func(rule.Finding) {
	return func(f rule.Finding) {
		f = one.Finish(f)
		if len(f.Nodes) == 0 {
			f.Nodes = nodes
		}
		f = f.Placed(zone, r.lacks)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.Findings = append(r.report.Findings, f)
		if r.options.Found != nil {
			r.options.Found(f)
		}
	}
}

// note notes what a rule could not judge.
func (r *run) note(one *rule.Rule, node string, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	at := ""
	if node != "" {
		at = " of " + node
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.judged[one.Name] = false
	r.report.Unjudged = append(r.report.Unjudged, fmt.Sprintf("%s%s: %v", one.Name, at, err))
}

// noteSome notes that a rule has looked at some rows of tables.
func (r *run) noteSome(one *rule.Rule, node, what string) {
	if what != "" {
		r.note(one, node, fmt.Errorf("it has looked only at %s", what))
	}
}

// fold makes one finding of the same finding on several nodes.
func fold(findings []rule.Finding) []rule.Finding {
	folded := []rule.Finding{}
	at := map[string]int{}
	for _, f := range findings {
		key := strings.Join([]string{f.Rule, string(f.Severity), f.What}, "\x00")
		i, seen := at[key]
		if !seen {
			at[key] = len(folded)
			folded = append(folded, f)
			continue
		}
		known := &folded[i]
		for _, node := range f.Nodes {
			if !slices.Contains(known.Nodes, node) {
				known.Nodes = append(slices.Clone(known.Nodes), node)
			}
		}
		for i := range min(len(known.Next), len(f.Next)) {
			if known.Next[i].Node != f.Next[i].Node {
				known.Next[i].Node = ""
			}
		}
		if f.At.After(known.At) {
			known.At = f.At
		}
	}
	for _, f := range folded {
		slices.Sort(f.Nodes)
	}
	return folded
}
