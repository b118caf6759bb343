// Bench compares ovs-offline with the programs that it uses (xz, ovsdb-server,
// ovs-ofctl) and with the procedure that it replaces. It runs them in turn and prints
// ratios, because the seconds of a shared machine mean little. Run it from the top of
// the repository with the program built: see `make bench`.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// sizes are the parameters of the generated load.
type sizes struct {
	flows, databases, archives []int // flows; megabytes
	rounds                     int
	program, scratch           string
	image, namespace           string // of replicas in pods; no image leaves them out
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s := sizes{}
	flows := flag.String("flows", "10000,100000", "numbers of flows")
	databases := flag.String("db", "20,200", "sizes of a southbound database, in MB")
	archives := flag.String("archive", "100", "sizes of an sos report's content, in MB")
	only := flag.String("only", "", "run only cases whose name contains this text")
	out := flag.String("json", "build/bench.json", "file to write the figures to, as JSON")
	markdown := flag.String("markdown", "", "document in which to replace the tables between two comments")
	read := flag.Bool("read", false, "run nothing: read the figures of an earlier run from the -json file")
	flag.IntVar(&s.rounds, "rounds", 3, "number of runs of each case")
	flag.StringVar(&s.program, "program", "build/ovs-offline", "the program to measure")
	flag.StringVar(&s.image, "image", "", "image for replicas in the pods of the cluster of KUBECONFIG, which are measured only with it")
	flag.StringVar(&s.namespace, "namespace", "replicas", "namespace of these pods")
	flag.Parse()
	var err error
	for _, list := range []struct {
		text string
		into *[]int
	}{{*flows, &s.flows}, {*databases, &s.databases}, {*archives, &s.archives}} {
		if *list.into, err = numbers(list.text); err != nil {
			return err
		}
	}
	var report report
	if *read {
		raw, err := os.ReadFile(*out)
		if err == nil {
			err = json.Unmarshal(raw, &report)
		}
		if err != nil {
			return err
		}
	} else if report, err = s.run(ctx, *only, *out); err != nil {
		return err
	}
	fmt.Print(report.summary())
	if *markdown == "" {
		return nil
	}
	return report.into(*markdown)
}

// run measures the cases whose name contains only, and writes the figures after
// each of them.
func (s sizes) run(ctx context.Context, only, out string) (report, error) {
	r := report{Machine: describeMachine(), Date: time.Now().UTC().Format(time.DateOnly)}
	var err error
	if s.program, err = filepath.Abs(s.program); err != nil {
		return r, err
	}
	if s.scratch, err = os.MkdirTemp("", "ovs-offline-bench-"); err != nil {
		return r, err
	}
	defer os.RemoveAll(s.scratch)
	// Starts are compared with bare local daemons; one case compares runtimes.
	if err := os.Setenv("OVS_OFFLINE_RUNTIME", "process"); err != nil {
		return r, err
	}
	for _, c := range s.cases() {
		if !strings.Contains(c.name, only) {
			continue
		}
		one, err := c.measure(ctx, s.rounds)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil { // the other cases can still be measured
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", c.name, err)
			continue
		}
		fmt.Print(one)
		r.Results = append(r.Results, one)
		r.Growth = growths(r.Results)
		raw, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = os.WriteFile(out, append(raw, '\n'), 0o644)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func numbers(list string) ([]int, error) {
	var found []int
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err != nil {
			return nil, fmt.Errorf("%q is not a number: %w", word, err)
		}
		found = append(found, n)
	}
	return found, nil
}
