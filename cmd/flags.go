package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ovs-offline/internal/fault"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime"
)

// runtimeFlag adds --runtime to a command that starts daemons, or asks for them. All commands
// take it, so that it can be in front of a command, but the help of the others does not show it.
func (o *options) runtimeFlag(command *cobra.Command) {
	o.addRuntime(command.Flags())
	_ = command.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions(runtimeNames(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *options) addRuntime(flags *pflag.FlagSet) {
	flags.StringVar(&o.runtime, "runtime", cmp.Or(os.Getenv("OVS_OFFLINE_RUNTIME"), choose.Auto), "where daemons run: auto, podman, docker, process or kubernetes (or OVS_OFFLINE_RUNTIME)")
}

// runtimes returns what finds the runtimes of a workdir on this machine, for whatever runs programs.
func runtimes() runtime.Finder { return choose.Finder(version) }

// detailFlag adds --detail.
func detailFlag(command *cobra.Command, value *bool, usage string) {
	command.Flags().BoolVar(value, "detail", false, usage)
}

// timeForMeaning returns how long a command may take to say what differences of a node do to packets, which it does with --detail.
func timeForMeaning(detail bool) time.Duration {
	if detail {
		return time.Minute
	}
	return 0
}

// forceFileUsage is the usage of --force where a command writes FILE.
const forceFileUsage = "replace FILE if it exists"

// adviseForce adds the flag that replaces a file to the error for a file that exists.
func adviseForce(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	return err
}

// checkLimit returns an error for a negative --limit.
func checkLimit(limit int) error {
	if limit < 0 {
		return fault.Usagef("--limit must be 0 (no limit) or more")
	}
	return nil
}

// choice is a flag that takes one of a few values.
type choice struct {
	value   *string
	choices []string
}

// Set implements pflag.Value.
func (c choice) Set(value string) error {
	if !slices.Contains(c.choices, value) {
		return fmt.Errorf("choose one of %s", strings.Join(c.choices, ", "))
	}
	*c.value = value
	return nil
}

func (c choice) String() string { return *c.value }

// Type implements pflag.Value.
func (c choice) Type() string { return "string" }

// choiceFlag adds a flag that takes one of choices, the first by default.
func choiceFlag(command *cobra.Command, value *string, name, short, usage string, choices ...string) {
	*value = choices[0]
	command.Flags().VarP(choice{value, choices}, name, short, usage)
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// sizeFlag adds a flag that takes a size, as 100GiB or as a number of bytes.
func sizeFlag(command *cobra.Command, value *int64, name, usage string) {
	command.Flags().Var(size{value}, name, usage)
	_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
}

// size is a number of bytes with a unit.
type size struct{ bytes *int64 }

// Set implements pflag.Value.
func (s size) Set(text string) error {
	bytes, err := units.RAMInBytes(text)
	if err != nil || bytes < 0 {
		return errors.New("a size is a number of bytes, or has a unit, such as 100GiB")
	}
	*s.bytes = bytes
	return nil
}

// String implements pflag.Value.
func (s size) String() string {
	if s.bytes == nil { // as pflag makes one to know the zero value
		return units.BytesSize(0)
	}
	return units.BytesSize(float64(*s.bytes))
}

// Type implements pflag.Value.
func (s size) Type() string { return "size" }
