package ovntests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ovs-offline/answer/compare"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Scrap is what is kept of a saved deployment: a database, of which the switches are made.
type Scrap string

// The scraps, by the name of the file that is kept.
const (
	NBAlone Scrap = "ovn-nb.db"
	SBAlone Scrap = "ovn-sb.db"
)

// Difference says how switches that were made of a scrap differ from the recorded ones.
type Difference struct {
	Flows int // recorded, of all bridges br-int
	// Differing counts the flows that were added, removed or changed. A key is the kind of the object
	// whose change explains the flows ("port", "chassis"), or "flow" if no other change explains them.
	Differing map[string]int
	Alone     []string // the flows that no other change explains
	Apart     []string // the nodes that one side lacks: compare does not compare their flows
}

// Compare makes the switches of a scrap, and compares them with the recorded ones.
func (a Asker) Compare(ctx context.Context, folder string, scrap Scrap) (result Difference, err error) {
	recorded, made := Asker{a.Program, filepath.Join(a.Work, "recorded")}, Asker{a.Program, filepath.Join(a.Work, "made")}
	defer func() {
		err = errors.Join(err, made.run(context.WithoutCancel(ctx), "stop", "--purge"), os.RemoveAll(a.Work))
	}()
	if _, err := recorded.collectNodes(ctx, folder); err != nil {
		return result, err
	}
	kept := filepath.Join(a.Work, string(scrap))
	if err := copyFile(filepath.Join(folder, string(scrap)), kept); err != nil {
		return result, err
	}
	if scrap == NBAlone {
		if err := requestChassis(ctx, kept, filepath.Join(folder, string(SBAlone))); err != nil {
			return result, err
		}
	}
	if err := made.run(ctx, "collect", kept); err != nil {
		return result, err
	}
	if err := made.run(ctx, "start", "--chassis", "all"); err != nil {
		return result, err
	}
	if result.Flows, err = countFlows(folder); err != nil {
		return result, err
	}
	err = a.difference(ctx, recorded.Work, made.Work, &result)
	return result, err
}

// difference adds what compare says of two folders of nodes.
func (a Asker) difference(ctx context.Context, recorded, made string, result *Difference) error {
	switches := filepath.Join(made, "chassis")
	if !exists(switches) {
		switches = made // of one chassis
	}
	out, err := exec.CommandContext(ctx, a.Program, "compare", "-o", "json", recorded, switches).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 3) {
		return fmt.Errorf("compare: %w", err)
	}
	var answer compare.Comparison
	if err := json.Unmarshal(out, &answer); err != nil {
		return err
	}
	result.Differing = map[string]int{}
	for _, finding := range answer.Findings {
		switch {
		case finding.Kind == "node":
			result.Apart = append(result.Apart, fmt.Sprintf("%s %s", finding.Name, finding.Change))
		case finding.Kind == "flow":
			result.Differing["flow"]++
			result.Alone = append(result.Alone, fmt.Sprintf("%s %s %s %s", finding.Node, finding.Change, finding.Name, finding.Match))
		case finding.Flows != nil:
			result.Differing[finding.Kind] += finding.Flows.Added + finding.Flows.Gone + finding.Flows.Changed
		}
	}
	return nil
}

// countFlows returns the number of recorded flows of the integration bridges.
func countFlows(folder string) (count int, err error) {
	dumps, err := filepath.Glob(filepath.Join(folder, "nodes", "*", "br-int.flows.dump"))
	for _, dump := range dumps {
		text, err := os.ReadFile(dump)
		if err != nil {
			return 0, err
		}
		count += bytes.Count(text, []byte("\n cookie="))
	}
	return count, err
}

// requestChassis names in a northbound database the chassis on which the ports were bound, as
// OpenStack and OVN-Kubernetes do: the tests of OVN rarely do.
func requestChassis(ctx context.Context, nb, sb string) error {
	southbound, _, err := file.Read(ctx, sb, "Port_Binding", "Chassis")
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, row := range southbound.Rows("Chassis") {
		names[row.UUID] = row.String("name")
	}
	operations := []any{ovsdb.NB}
	for _, row := range southbound.Rows("Port_Binding") {
		for _, chassis := range row.UUIDs("chassis") {
			if row.String("type") == "" {
				operations = append(operations, request(row.String("logical_port"), names[chassis]))
			}
		}
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "ovsdb-tool", "transact", nb, string(text)).CombinedOutput()
	if err == nil && strings.Contains(string(out), `"error"`) {
		err = errors.New("an operation failed")
	}
	if err != nil {
		return fmt.Errorf("%s: ovsdb-tool transact: %w: %s", nb, err, out)
	}
	return nil
}

// request is the operation that requests a chassis for a port, unless one is requested already.
func request(port, chassis string) any {
	return map[string]any{"op": "mutate", "table": "Logical_Switch_Port", "where": [][3]any{{"name", "==", port}},
		"mutations": [][3]any{{"options", "insert", []any{"map", [][2]string{{"requested-chassis", chassis}}}}}}
}
