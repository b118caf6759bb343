// Sets runs a set of the lab, or all (with --kernel only the sets for the kernel's
// datapath, and those with network namespaces that run there too), and writes the capture
// of each node, and which packets were sent and where they came out. With all, each set has
// a folder of its own in DIR, in place of an earlier one. Run it from the top of the
// repository. With cached, it prints the folder below DIR that holds all: the kept ones, or recorded ones if what makes them has
// changed. With keep, it records all anew and keeps them in the repository at DIR. With --kernel, a set with network namespaces needs LAB_RELAY, the path of the
// program that is built from test/oracle/sets/relay.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ovs-offline/test/oracle/sets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := flag.String("root", "", "the root file system of another release")
	kernel := flag.Bool("kernel", false, "on the kernel's datapath, in a guest of scripts/kernel/guest")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: go run ./scripts/sets [--root ROOT | --kernel] all|cached|keep|%s DIR\n", strings.Join(slices.Concat(sets.Names(), sets.NamespaceNames(), sets.OwnNames(), sets.VRFNames(), sets.KernelNames()), "|"))
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := runAll(ctx, sets.Options{Lab: "scripts/lab/lab", Root: *root, Name: flag.Arg(0), Kernel: *kernel}, flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "sets:", err)
		os.Exit(1)
	}
}

func runAll(ctx context.Context, o sets.Options, dir string) error {
	switch o.Name {
	case "all":
	case "cached":
		return cached(ctx, dir)
	case "keep":
		return sets.Keep(ctx, dir, os.Stdout)
	default:
		return sets.Record(ctx, o, dir, os.Stdout)
	}
	names, missing := sets.Available()
	switch {
	case o.Kernel:
		names = slices.Concat(sets.KernelNames(), sets.KernelNamespaceNames())
	case o.Root != "":
		names = sets.Names()
	case missing != "":
		fmt.Println(missing)
	}
	for _, name := range names {
		o.Name = name
		of := filepath.Join(dir, name)
		if err := os.RemoveAll(of); err != nil {
			return err
		}
		if err := sets.Record(ctx, o, of, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// cached prints the folder below dir that holds all sets; what is done about them goes to standard error.
func cached(ctx context.Context, dir string) error {
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	folder, err := sets.Cached(ctx, top, filepath.Join(top, dir), false, os.Stderr)
	fmt.Println(folder)
	return err
}
