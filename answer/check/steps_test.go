package check_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/rule"
	"ovs-offline/test/check/sweep"
)

// steps runs the next steps of findings as a user would, each once.
type steps struct {
	program string // "" where a run tries none
	ran     map[string]bool
}

// newSteps builds the program in a sweep. In make test, TestNextStepsAnswer of package cmd runs each shape of step.
func newSteps(t *testing.T) *steps {
	t.Helper()
	if !sweep.Whole() {
		return &steps{}
	}
	s := &steps{filepath.Join(t.TempDir(), "ovs-offline"), map[string]bool{}}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", s.program, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return s
}

// try runs the steps of findings about a folder of nodes, and wants each to answer: to end with 0, with 3 or with 4.
func (s *steps) try(t *testing.T, folder string, nodes []string, found []rule.Finding) {
	t.Helper()
	for _, f := range found {
		for _, next := range f.Next {
			if s.program == "" || next.Args == nil || slices.Equal(next.Args, []string{"flows", "--datapath"}) {
				continue // that one needs a running replica
			}
			args := slices.Clone(next.Args)
			if slices.Contains(nodes, next.Node) {
				args = slices.Insert(args, 1, "--node", next.Node)
			}
			if key := strings.Join(args, "\x00"); !s.ran[key] {
				s.ran[key] = true
				s.run(t, f, append([]string{"-w", folder}, args...))
			}
		}
	}
}

func (s *steps) run(t *testing.T, f rule.Finding, args []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), s.program, args...).CombinedOutput()
	exit := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		exit, err = ended.ExitCode(), nil
	}
	if err != nil || !slices.Contains([]int{0, 3, 4}, exit) {
		t.Errorf("%s says to run %q, which ends with %d, %v: %s", f.Rule, args[2:], exit, err, out)
	}
}
