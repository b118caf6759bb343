// Man writes a man page for every command, and completions for bash, zsh and fish,
// into a directory with the layout of /usr/share:
//
//	go run ./scripts/man DIR
//	go run ./scripts/man -commands
//
// With -commands, it writes docs/commands.md instead, from the top folder of the repository.
//
// The date in the pages is SOURCE_DATE_EPOCH, so that builds are reproducible.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"ovs-offline/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/man DIR | -commands")
		os.Exit(2)
	}
	do := write
	if os.Args[1] == "-commands" {
		do = func(string) error {
			return os.WriteFile("docs/commands.md", []byte(commandsPage(cmd.Root(), "docs")), 0o644)
		}
	}
	if err := do(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	// Defaults from this environment don't belong in the pages.
	os.Unsetenv("OVS_DBG_WORKDIR")
	os.Unsetenv("OVS_OFFLINE_RUNTIME")
	root := cmd.Root()
	root.DisableAutoGenTag = true
	nameValues(root)
	pages := filepath.Join(dir, "man", "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Source: "ovs-offline", Manual: "ovs-offline"}
	return errors.Join(doc.GenManTree(root, header, pages), completions(root, dir))
}

// nameValues makes the pages name the values of flags without a default: --ttl=int, not
// --ttl=0.
func nameValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.DefValue == "0" || f.DefValue == "[]" {
			f.DefValue, _ = pflag.UnquoteUsage(f)
		}
	})
	for _, sub := range c.Commands() {
		nameValues(sub)
	}
}

func completions(root *cobra.Command, dir string) error {
	for name, generate := range map[string]func(string) error{
		"bash-completion/completions/ovs-offline":    func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"zsh/site-functions/_ovs-offline":            root.GenZshCompletionFile,
		"fish/vendor_completions.d/ovs-offline.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := generate(path); err != nil {
			return err
		}
	}
	return nil
}
