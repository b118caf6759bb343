// Ovntests measures traces against OVN's own tests. OVN is the folder of a build of OVN, configured
// with --with-ovs-source, and INSTALLED the folder into which it and its Open vSwitch were installed
// (make install DESTDIR). It runs tests of tests/ovn.at with a stand-in for ovs-appctl that saves
// every chassis before a packet and what came out after it, replays what was saved with the
// installed programs, and compares the traces. Run it from the top of the repository, after make
// build:
//
//	go run ./scripts/ovntests --tests '10 25' OVN INSTALLED OUT
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ovs-offline/test/oracle/ovntests"
)

// The environment by which the stand-in knows where to save, how many packets of a test, and the
// real program.
const (
	saveTo      = "OVNTESTS_OUT"
	mostPackets = "OVNTESTS_MOST"
	realProgram = "OVNTESTS_REAL"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if filepath.Base(os.Args[0]) == "ovs-appctl" {
		os.Exit(appctl(ctx, os.Args[1:]))
	}
	tests := flag.String("tests", "", "numbers of tests, with blanks between them")
	packets := flag.Int("packets", 3, "packets to save of each test, the first ones")
	askOnly := flag.Bool("ask", false, "ask again about what OUT has")
	scraps := flag.Bool("scraps", false, "compare the switches that are made of each test's databases alone with the recorded ones, of what OUT has")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/ovntests [--tests NUMBERS] [--packets N] [--ask | --scraps] OVN INSTALLED OUT")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 3 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(ctx, flag.Arg(0), flag.Arg(1), flag.Arg(2), *tests, *packets, *askOnly, *scraps); err != nil {
		fmt.Fprintln(os.Stderr, "ovntests:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, ovn, installed, out, tests string, packets int, askOnly, scraps bool) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if !askOnly && !scraps {
		for _, test := range strings.Fields(tests) {
			if err := record(ctx, ovn, out, test, packets); err != nil {
				return err
			}
		}
	}
	if err := useInstalled(installed); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "ot")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program, err := filepath.Abs("build/ovs-offline")
	if err != nil {
		return err
	}
	asker := ovntests.Asker{Program: program, Work: work}
	if scraps {
		return compare(ctx, out, asker)
	}
	return ask(ctx, out, asker)
}

// useInstalled lets the programs of an installation come first.
func useInstalled(folder string) error {
	return os.Setenv("PATH", filepath.Join(folder, "usr", "bin")+":"+filepath.Join(folder, "usr", "sbin")+":"+os.Getenv("PATH"))
}

// record runs one test. One that fails has saved packets as well: the stand-in makes it slower.
func record(ctx context.Context, ovn, out, test string, packets int) error {
	bin := filepath.Join(out, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	link := filepath.Join(bin, "ovs-appctl")
	_ = os.Remove(link) // of an earlier run
	if err := os.Symlink(program, link); err != nil {
		return err
	}
	suite := exec.CommandContext(ctx, "make", "-C", ovn, "check-local", "TESTSUITEFLAGS="+test, "AUTOTEST_PATH="+bin+":"+paths(ovn))
	suite.Env = append(os.Environ(), saveTo+"="+filepath.Join(out, "tests"), mostPackets+"="+strconv.Itoa(packets), realProgram+"="+filepath.Join(sourceOf(ovn), "utilities", "ovs-appctl"))
	// A file, not a pipe: daemons that a failed test leaves would keep a pipe open.
	log, err := os.Create(filepath.Join(out, "make.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	suite.Stdout, suite.Stderr = log, log
	err = suite.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text, readErr := os.ReadFile(log.Name())
	if readErr != nil {
		return readErr
	}
	result := "passed"
	if err != nil {
		result = "failed or was skipped"
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), test+":") {
			result = strings.TrimSpace(line)
		}
	}
	fmt.Fprintf(os.Stderr, "test %s: %s\n", test, result)
	return nil
}

// sourceOf returns the folder of the Open vSwitch that an OVN was built with.
func sourceOf(ovn string) string {
	text, err := os.ReadFile(filepath.Join(ovn, "Makefile"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if dir, ok := strings.CutPrefix(line, "OVSBUILDDIR = "); ok {
			return strings.TrimSpace(dir)
		}
	}
	return ""
}

// paths returns the folders with the programs of a build.
func paths(ovn string) string {
	ovs := sourceOf(ovn)
	var all []string
	for _, folder := range []string{"utilities", "vswitchd", "ovsdb", "vtep", "tests"} {
		all = append(all, filepath.Join(ovs, folder))
	}
	for _, folder := range []string{"controller-vtep", "northd", "utilities", "controller", "ic", "tests"} {
		all = append(all, filepath.Join(ovn, folder))
	}
	return strings.Join(all, ":")
}

// appctl stands in for ovs-appctl and returns its exit code.
func appctl(ctx context.Context, args []string) int {
	code := 0
	send := func() error {
		command := exec.CommandContext(ctx, os.Getenv(realProgram), args...)
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = command.Run() // its exit code is the result
		code = command.ProcessState.ExitCode()
		return nil
	}
	at := slices.Index(args, "netdev-dummy/receive")
	test, err := os.Getwd()
	number, _ := strconv.Atoi(os.Getenv(mostPackets))
	if at < 0 || len(args) < at+3 || err != nil || strings.HasPrefix(args[at+2], "-") {
		_ = send()
		return code
	}
	recorder := ovntests.Recorder{Test: test, Out: filepath.Join(os.Getenv(saveTo), filepath.Base(test)), Most: number}
	packet := ovntests.Packet{Node: filepath.Base(os.Getenv("OVS_RUNDIR")), Port: args[at+1], Bytes: args[at+2]}
	sent := false
	if err := recorder.Receive(ctx, packet, func() error { sent = true; return send() }); err != nil && !sent {
		_ = send()
	}
	return code
}

// ask asks about all saved packets, and prints a line for each and their numbers.
func ask(ctx context.Context, out string, asker ovntests.Asker) error {
	folders, err := filepath.Glob(filepath.Join(out, "tests", "*", "*", ovntests.PacketFile))
	if err != nil {
		return err
	}
	total := map[ovntests.Class]int{}
	for i, folder := range folders {
		folder = filepath.Dir(folder)
		verdict, err := asker.For(i).Ask(ctx, folder)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		total[verdict.Class]++
		name, err := filepath.Rel(filepath.Join(out, "tests"), folder)
		if err != nil {
			return err
		}
		fmt.Printf("%s %s: %s\n", name, verdict.Class, verdict.Why)
	}
	for _, class := range []ovntests.Class{ovntests.Right, ovntests.Undetermined, ovntests.Failed, ovntests.Wrong, ovntests.NotAsked} {
		fmt.Printf("%s: %d\n", class, total[class])
	}
	return nil
}

// compare makes the switches of each test from its databases, and prints how they differ.
func compare(ctx context.Context, out string, asker ovntests.Asker) error {
	folders, err := filepath.Glob(filepath.Join(out, "tests", "*", "01"))
	if err != nil {
		return err
	}
	for i, folder := range folders {
		for _, scrap := range []ovntests.Scrap{ovntests.SBAlone, ovntests.NBAlone} {
			found, err := asker.For(i).Compare(ctx, folder, scrap)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			test := filepath.Base(filepath.Dir(folder))
			if err != nil {
				fmt.Printf("%s %s: error: %v\n", test, scrap, err)
				continue
			}
			fmt.Printf("%s %s: %d flows; differing: %v\n", test, scrap, found.Flows, found.Differing)
			for _, detail := range append(found.Apart, found.Alone...) {
				fmt.Printf("    %s\n", detail)
			}
		}
	}
	return nil
}
