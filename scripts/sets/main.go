// Sets runs a set of the lab, or all (with --kernel only the sets for the kernel's
// datapath, and those with network namespaces that run there too), and writes the capture
// of each node, and which packets were sent and where they came out. With all, each set has
// a folder of its own in DIR, in place of an earlier one. Run it from the top of the
// repository. With --kernel, a set with network namespaces needs LAB_RELAY, the path of the
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
		fmt.Fprintf(os.Stderr, "usage: go run ./scripts/sets [--root ROOT | --kernel] all|%s DIR\n", strings.Join(slices.Concat(sets.Names(), sets.NamespaceNames(), sets.OwnNames(), sets.VRFNames(), sets.KernelNames()), "|"))
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
	if o.Name != "all" {
		return run(ctx, o, dir)
	}
	names := sets.Names()
	switch missing := sets.MissingForNamespaces(); {
	case o.Kernel:
		names = slices.Concat(sets.KernelNames(), sets.KernelNamespaceNames())
	case o.Root != "":
	case missing != "":
		fmt.Println("without the sets with network namespaces:", missing)
	default:
		names = slices.Concat(names, sets.NamespaceNames(), sets.OwnNames())
		if missing := sets.MissingForVRFs(); missing != "" {
			fmt.Println("without the sets with VRFs:", missing)
		} else {
			names = append(names, sets.VRFNames()...)
		}
	}
	for _, name := range names {
		o.Name = name
		of := filepath.Join(dir, name)
		if err := os.RemoveAll(of); err != nil {
			return err
		}
		if err := run(ctx, o, of); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

func run(ctx context.Context, o sets.Options, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s, err := sets.Run(ctx, o, dir)
	if err != nil {
		return err
	}
	classes := map[string]int{}
	established := 0
	for _, p := range s.Packets {
		classes[p.Class]++
		if p.Established {
			established++
		}
	}
	fmt.Printf("%s: %d packets (%d delivered, %d dropped, %d answered; %d of established connections), %d before the capture\n", s.Name, len(s.Packets), classes[sets.Delivered], classes[sets.Dropped], classes[sets.Generated], established, len(s.Earlier))
	fmt.Printf("up %.1f s, connections %.1f s, capture %.1f s, packets %.1f s\n", s.Timing.Up, s.Timing.Earlier, s.Timing.Capture, s.Timing.Packets)
	for _, surprise := range s.Surprises {
		fmt.Println("surprise:", surprise)
	}
	if len(s.Surprises) > 0 {
		return fmt.Errorf("%d packets went another way than the lab was built for", len(s.Surprises))
	}
	return nil
}
