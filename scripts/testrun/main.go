// Testrun runs a command that runs tests, and ends with it all that the tests have started or mounted, however it ends. With
// -sets it records the sets of the lab first, or takes those recorded before, and names them to the tests, which
// share their collected nodes and the replicas of these. Run it from the top of the repository:
//
//	testrun [-sets DIR] COMMAND [ARG...]
//
// As root it has a process namespace and a mount namespace of its own, and a /tmp in memory where ten gigabytes are
// free and the repository is elsewhere: tests write small files by the hundred thousand. Without the process
// namespace, the next run ends what this one left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

func main() {
	cached := flag.String("sets", "", "the folder in which sets are kept from run to run")
	anew := flag.Bool("anew", false, "record the sets in any case")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: testrun [-sets DIR [-anew]] COMMAND [ARG...]")
		os.Exit(2)
	}
	if code, contained := contain(); contained {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *cached, *anew, flag.Args())
	stop()
	if exit, isExit := errors.AsType[*exec.ExitError](err); isExit && exit.Exited() {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// run runs the command in a folder of its own, and ends what it leaves.
func run(ctx context.Context, cached string, anew bool, argv []string) (err error) {
	folder, err := begin()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.end()) }()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), ovs.RunVariable+"="+filepath.Join(folder.path, "run"))
	if os.Getenv(stage) == "" { // the next run finds what is left by its path
		cmd.Env = append(cmd.Env, "TMPDIR="+folder.path)
	}
	if cached != "" {
		top, err := os.Getwd()
		if err != nil {
			return err
		}
		recorded, err := sets.Cached(ctx, top, filepath.Join(top, cached), anew, os.Stdout)
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, sets.RecordedVariable+"="+recorded)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}
