package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/names"
)

// Check is a question with the verdict that is expected.
type Check struct {
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Network  string `json:"network,omitempty"`
	Family   int    `json:"family,omitempty"` // 4 or 6
	Size     int    `json:"size,omitempty"`   // bytes
	TTL      int    `json:"ttl,omitempty"`
	// Node and Flow ask about a flow in place of names.
	Node   string         `json:"node,omitempty"`
	Flow   string         `json:"flow,omitempty"`
	Expect answer.Verdict `json:"expect,omitempty"` // in any case; "" for any
}

// ReadChecks reads a document with a list of checks under the key checks, in YAML or JSON.
func ReadChecks(r io.Reader) ([]Check, error) {
	const most = 64 << 20
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("more than %d MiB", most>>20)
	}
	var document struct {
		Checks []Check `json:"checks"`
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), &document); err != nil {
		return nil, err
	}
	if len(document.Checks) == 0 {
		return nil, errors.New("it has no checks: it needs a list of them under the key checks, each with from and to, or flow")
	}
	for i := range document.Checks {
		c := &document.Checks[i]
		if (c.From == "" || c.To == "") == (c.Flow == "") {
			return nil, fmt.Errorf("check %d has to have either from and to, or flow", i+1)
		}
		if !slices.Contains([]int{0, 4, 6}, c.Family) || c.Family != 0 && c.Flow != "" {
			return nil, fmt.Errorf("check %d: family is 4 or 6, and goes with from and to", i+1)
		}
		if err := CheckSize(c.Size); err != nil {
			return nil, fmt.Errorf("check %d: %w", i+1, err)
		}
		c.Expect = answer.Verdict(strings.ToUpper(string(c.Expect)))
	}
	return document.Checks, nil
}

// Checked is the result of a check.
type Checked struct {
	Check
	Answer *answer.Answer `json:"answer,omitempty"`
	Error  string         `json:"error,omitempty"` // why the question could not be asked
}

// Passed reports whether the verdict is the one that was expected.
func (c Checked) Passed() bool {
	return c.Answer != nil && (c.Expect == "" || c.Expect == c.Answer.Verdict)
}

// Run asks the questions, as many at once as there are processors, and yields the results
// in their order. Only as many results as are asked at once are held in memory.
func (s *Session) Run(ctx context.Context, checks []Check) iter.Seq[Checked] {
	return inOrder(ctx, slices.Values(checks), s.check)
}

func (s *Session) check(ctx context.Context, c Check) Checked {
	checked := Checked{Check: c}
	var err error
	if c.Flow != "" {
		checked.Answer, err = s.Flow(ctx, c.Node, c.Flow, c.Size)
	} else {
		checked.Answer, err = s.Ask(ctx, Between{From: c.From, To: c.To, Network: c.Network, Size: c.Size, Question: names.Question{Protocol: c.Protocol, TTL: c.TTL, Family: c.Family}})
	}
	if err != nil {
		checked.Answer, checked.Error = nil, err.Error()
	}
	return checked
}
