// Man writes a man page for every command, and completions for bash, zsh and fish,
// into a directory with the layout of /usr/share:
//
//	go run ./scripts/man DIR
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

	"ovs-offline/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/man DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
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
	pages := filepath.Join(dir, "man", "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Source: "ovs-offline", Manual: "ovs-offline"}
	return errors.Join(doc.GenManTree(root, header, pages), completions(root, dir))
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
