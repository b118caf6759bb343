package rule

import "context"

// Rule looks for one kind of fault. One of Node, Deployment and Case is set.
type Rule struct {
	Name     string // "interface-without-port-number"
	Severity Severity
	Follows  string   // as in Finding
	Sources  []string // as in Finding
	Causes   []string // as in Finding

	// Needs lists what the rule reads: without one of these, it looks at nothing. Empty for a rule that always looks.
	Needs []Data

	// Node looks at each node, Deployment at the databases of each deployment with all its nodes, and
	// Case at everything. found takes a finding without what the rule gives: a finding may replace it.
	Node       func(ctx context.Context, n *Node, found func(Finding)) error
	Deployment func(ctx context.Context, d *Deployment, found func(Finding)) error
	Case       func(ctx context.Context, c *Case, found func(Finding)) error

	// Slow marks a rule that reads flows or logs, or runs daemons. Slow rules run after all others.
	Slow bool
}

// Finish gives a finding what it lacks of its rule.
func (r *Rule) Finish(f Finding) Finding {
	if f.Rule == "" {
		f.Rule = r.Name
	}
	if f.Severity == "" {
		f.Severity = r.Severity
	}
	if f.Follows == "" {
		f.Follows = r.Follows
	}
	f.Causes = append(f.Causes, r.Causes...)
	if len(f.Sources) == 0 {
		f.Sources = r.Sources
	}
	return f
}
