// Fidelity replays captures and topologies of the lab, and prints how many traces of
// each replica equal those of the live node. For each difference it also prints the
// incomplete steps of the replica's report. Run it from the top of the repository.
// Arguments select topologies by name, and captures or recordings of `lab run` by
// folder. Without arguments it replays all captures and topologies.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/test/oracle/fidelity"
)

const (
	lab      = "scripts/lab/lab"
	captures = "testdata/captures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, chosen []string) error {
	scratch, err := os.MkdirTemp("", "ovs-offline-fidelity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	fmt.Printf("%-22s %s\n", "node", fidelity.Header)
	if len(chosen) == 0 {
		if chosen, err = all(ctx); err != nil {
			return err
		}
	}
	for _, what := range chosen {
		r, err := record(ctx, what, mkdir(scratch, filepath.Base(what)))
		if err == nil {
			err = measure(ctx, r, filepath.Join(scratch, "wd"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all returns the folders of the captures and the names of the topologies.
func all(ctx context.Context) ([]string, error) {
	chosen, err := filepath.Glob(filepath.Join(captures, "*"))
	if err != nil {
		return nil, err
	}
	out, err := command.Run(ctx, command.Command{Argv: []string{lab, "list"}})
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			chosen = append(chosen, f[0])
		}
	}
	return chosen, err
}

// record records a topology, or returns an earlier recording of a node.
func record(ctx context.Context, what, dir string) (fidelity.Recording, error) {
	switch {
	case !strings.Contains(what, "/"):
		return fidelity.Lab(ctx, lab, what, dir)
	case exists(filepath.Join(what, "live")):
		return fidelity.Recorded(what)
	default:
		return fidelity.Capture(ctx, what, dir)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func mkdir(parts ...string) string {
	dir := filepath.Join(parts...)
	_ = os.Mkdir(dir, 0o700) // writing to it then fails with the reason
	return dir
}

// measure replays a recording and prints its figures and differences.
func measure(ctx context.Context, r fidelity.Recording, dir string) error {
	n, err := fidelity.Replay(ctx, r.Report, dir, replica.Options{})
	if err != nil {
		return err
	}
	f, err := n.Compare(ctx, r.Packets, r.Live)
	fmt.Printf("%-22s %s\n", r.Name, f)
	for _, d := range f.Differences {
		fmt.Printf("    %s\n", strings.ReplaceAll(d, "\n", "\n    "))
	}
	if len(f.Differences) > 0 || !n.Report.Complete() {
		explain(n.Report)
	}
	if closeErr := n.Close(context.WithoutCancel(ctx)); err == nil {
		err = closeErr
	}
	if removeErr := os.RemoveAll(dir); err == nil {
		err = removeErr
	}
	return err
}

// explain prints the steps that did not restore everything: the causes of differences.
func explain(r *report.Report) {
	for _, s := range r.Steps {
		if s.Status == report.Restored || s.Status == report.Idle {
			continue
		}
		fmt.Printf("    %s: %s: %s\n", s.Status, s.Step, strings.Join(s.Details, "; "))
	}
	for _, item := range r.Rejected {
		fmt.Printf("    rejected: %s:%d: %s\n", item.File, item.Line, item.Reason)
	}
}
