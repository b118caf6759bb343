// Package rigtest has what the tests of several rigs share: a lab, in which all tests of a
// package use one deployment, and ovs-offline, which they run as its user does.
package rigtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Program is ovs-offline by its path.
type Program string

// Result is what a run of the program printed, an error if one was expected to succeed.
type Result struct {
	Args            []string
	Code            int
	Out, Complaints string
}

func (r Result) Error() string {
	return fmt.Sprintf("ovs-offline %q: exit %d\n%s\n%s", r.Args, r.Code, r.Out, r.Complaints)
}

// Run runs the program with arguments.
func (p Program) Run(args ...string) Result {
	r := Result{Args: args}
	var out, complaints bytes.Buffer
	command := exec.Command(string(p), args...)
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	if r.Code = command.ProcessState.ExitCode(); err != nil && r.Code < 0 {
		complaints.WriteString(err.Error())
	}
	r.Out, r.Complaints = out.String(), complaints.String()
	return r
}

// Collect collects all nodes of a cluster into a folder, over the API server.
func (p Program) Collect(c *cluster.Cluster, folder string) Result {
	kubeconfig, err := c.Kubeconfig(cluster.Admin, "")
	if err != nil {
		return Result{Code: 1, Complaints: err.Error()}
	}
	return p.Run("-w", folder, "collect-k8s", "--all", "--kubeconfig", kubeconfig)
}

// CollectAtRest collects all nodes of a cluster into a folder, and again as long as drift is undetermined
// because flows were on their way.
func (p Program) CollectAtRest(c *cluster.Cluster, folder string) (r Result) {
	const undetermined = 3
	for range 5 {
		if err := os.RemoveAll(folder); err != nil {
			return Result{Code: 1, Complaints: err.Error()}
		}
		if r = p.Collect(c, folder); r.Code != 0 || p.Run("-w", folder, "drift").Code != undetermined {
			break
		}
	}
	return r
}

// Read reads the JSON that a run of the program printed, whose exit code is one of those or 0.
func (r Result) Read(t *testing.T, into any, codes ...int) {
	t.Helper()
	known := false
	for _, code := range append(codes, 0) {
		known = known || r.Code == code
	}
	if err := json.Unmarshal([]byte(r.Out), into); err != nil || !known {
		t.Fatalf("%v: %v", err, r)
	}
}
