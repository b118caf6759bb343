package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
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

// checkedFirst is how much of a list of checks is read before the first is returned, in bytes.
const checkedFirst = 4 << 20

// ReadChecks reads a list of checks, alone or under the key checks, in YAML or JSON. Of a longer
// list than checkedFirst, which has to be in YAML and to begin a line with each check, it reads
// one check after the other; a check that can't be read ends it.
func ReadChecks(r io.Reader) (iter.Seq2[Check, error], error) {
	text, err := io.ReadAll(io.LimitReader(r, checkedFirst+1))
	if err != nil {
		return nil, err
	}
	if len(text) > checkedFirst {
		return readLongList(io.MultiReader(bytes.NewReader(text), r))
	}
	list, err := listOf(bytes.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	var checks []Check
	for i, element := range list {
		check, err := readCheck(element)
		if err != nil {
			return nil, fmt.Errorf("check %d: %w", i+1, err)
		}
		checks = append(checks, check)
	}
	return func(yield func(Check, error) bool) {
		for _, check := range checks {
			if !yield(check, nil) {
				return
			}
		}
	}, nil
}

// maxCheck bounds a check of a long list, and each of its lines, in bytes.
const maxCheck = 1 << 20

// readLongList reads the checks of a list in YAML one by one: each begins at a line with a dash.
func readLongList(r io.Reader) (iter.Seq2[Check, error], error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCheck)
	for lines.Scan() {
		line := lines.Text()
		word := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(word)]
		switch {
		case beginsCheck(line, indent):
			return func(yield func(Check, error) bool) { yieldChecks(lines, indent, yield) }, nil
		case word != "" && !strings.HasPrefix(word, "#") && line != "---" && line != "checks:":
			return nil, fmt.Errorf("a list of more than %d MiB has to be in YAML, where each check begins with a line of its own: - from: NAME", checkedFirst>>20)
		}
	}
	return nil, cmp.Or(lines.Err(), errNoChecks)
}

// beginsCheck reports whether a line is the first of a check in a list with an indentation.
func beginsCheck(line, indent string) bool {
	after, found := strings.CutPrefix(line, indent+"-")
	return found && (after == "" || after[0] == ' ')
}

// yieldChecks yields the checks of a list, whose first line is read.
func yieldChecks(lines *bufio.Scanner, indent string, yield func(Check, error) bool) {
	text := append(bytes.Clone(lines.Bytes()), '\n')
	for count, more := 1, true; more; count++ {
		for more = lines.Scan(); more && !beginsCheck(lines.Text(), indent) && len(text) < maxCheck; more = lines.Scan() {
			text = append(append(text, lines.Bytes()...), '\n')
		}
		check, err := readSingleCheck(text)
		if err != nil {
			yield(Check{}, fmt.Errorf("check %d: %w", count, err))
			return
		}
		if !yield(check, nil) {
			return
		}
		if err := lines.Err(); err != nil {
			yield(Check{}, fmt.Errorf("check %d: %w", count+1, err))
			return
		}
		text = append(append(text[:0], lines.Bytes()...), '\n')
	}
}

// readSingleCheck reads a list of one check.
func readSingleCheck(text []byte) (Check, error) {
	list, err := listOf(text)
	if err != nil {
		return Check{}, err
	}
	return readCheck(list[0]) // more would have lines of their own
}

// errNoChecks is the error for a document without checks.
var errNoChecks = errors.New("it has no checks: it needs a list of them, alone or under the key checks, each with from and to, or flow")

// listOf returns the list of checks in a document.
func listOf(text []byte) ([]any, error) {
	var document any
	if err := yaml.UnmarshalStrict(text, &document); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if keys, ok := document.(map[string]any); ok {
		for key := range keys {
			if key != "checks" {
				return nil, fmt.Errorf("the key %q is not known: the list of checks has the key checks", key)
			}
		}
		document = keys["checks"]
	}
	list, ok := document.([]any)
	if !ok || len(list) == 0 {
		return nil, errNoChecks
	}
	return list, nil
}

// readCheck reads a check from an element of a list.
func readCheck(element any) (check Check, err error) {
	if _, ok := element.(map[string]any); !ok {
		return check, errors.New("it has to have keys: from and to, or flow")
	}
	text, err := json.Marshal(element)
	if err != nil {
		return check, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&check)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return check, fmt.Errorf("%s can't be a %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return check, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return check, check.validate()
}

// validate checks the words of a check.
func (c *Check) validate() error {
	if (c.From == "" || c.To == "") == (c.Flow == "") {
		return errors.New("it has to have either from and to, or flow")
	}
	if !slices.Contains([]int{0, 4, 6}, c.Family) || c.Family != 0 && c.Flow != "" {
		return errors.New("family is 4 or 6, and goes with from and to")
	}
	if c.Protocol != "" && !slices.Contains(names.Protocols(), c.Protocol) {
		return fmt.Errorf("protocol is one of %s, not %q; a port follows the name: %s:80", strings.Join(names.Protocols(), ", "), c.Protocol, c.To)
	}
	c.Expect = answer.Verdict(strings.ToUpper(string(c.Expect)))
	if verdicts := answer.Verdicts(); c.Expect != "" && !slices.Contains(verdicts, c.Expect) {
		return fmt.Errorf("expect is one of %v, not %q", verdicts, c.Expect)
	}
	return CheckSize(c.Size)
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
func (s *Session) Run(ctx context.Context, checks iter.Seq[Check]) iter.Seq[Checked] {
	return askInOrder(ctx, checks, s.check)
}

func (s *Session) check(ctx context.Context, check Check) Checked {
	checked := Checked{Check: check}
	var err error
	if check.Flow != "" {
		checked.Answer, err = s.Flow(ctx, check.Node, check.Flow, check.Size)
	} else {
		checked.Answer, err = s.Ask(ctx, Between{From: check.From, To: check.To, Network: check.Network, Size: check.Size, Question: names.Question{Protocol: check.Protocol, TTL: check.TTL, Family: check.Family}})
	}
	if err != nil {
		checked.Answer, checked.Error = nil, err.Error()
	}
	return checked
}
