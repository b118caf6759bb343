// Fidelity replays every capture and every topology of the lab, and prints how
// alike the traces of live node and replica are, and for every difference what
// the replica's report says of itself. Run it from the top of the repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/parity"
	"ovs-offline/replica"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/runtime/process"
)

const (
	lab      = "scripts/lab/lab"
	captures = "testdata/captures"
)

func main() {
	process.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "ovs-offline-fidelity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	fmt.Printf("%-22s %s\n", "node", parity.Header)
	folders, err := filepath.Glob(filepath.Join(captures, "*"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		r, err := parity.Capture(ctx, folder, mkdir(scratch, filepath.Base(folder)))
		if err == nil {
			err = measure(ctx, r, filepath.Join(scratch, "wd"))
		}
		if err != nil {
			return err
		}
	}
	topologies, err := topologies(ctx)
	if err != nil {
		return err
	}
	for _, t := range topologies {
		r, err := parity.Lab(ctx, lab, t, filepath.Join(scratch, t))
		if err == nil {
			err = measure(ctx, r, filepath.Join(scratch, "wd"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mkdir(parts ...string) string {
	dir := filepath.Join(parts...)
	_ = os.Mkdir(dir, 0o700) // whoever writes there says what is wrong
	return dir
}

func topologies(ctx context.Context) ([]string, error) {
	out, err := command.Run(ctx, command.Command{Argv: []string{lab, "list"}})
	var names []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 && (len(os.Args) == 1 || strings.Contains(strings.Join(os.Args[1:], " "), f[0])) {
			names = append(names, f[0])
		}
	}
	return names, err
}

// measure replays one recording and prints its line, and what differs.
func measure(ctx context.Context, r parity.Recording, dir string) error {
	n, err := parity.Replay(ctx, r.Report, dir, replica.Options{})
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

// explain prints the steps that could not restore all: where a difference comes from.
func explain(r *restore.Report) {
	for _, s := range r.Steps {
		if s.Status == restore.Restored || s.Status == restore.Idle {
			continue
		}
		fmt.Printf("    %s: %s: %s\n", s.Status, s.Step, strings.Join(s.Details, "; "))
	}
	for _, item := range r.SetAside {
		fmt.Printf("    set aside: %s:%d: %s\n", item.File, item.Line, item.Reason)
	}
}
