package sets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ovs-offline/internal/command"
)

// keptFile is the archive, below the repository, of sets and nodes as they were recorded once. All who test with the same
// programs read the same UUIDs, numbers and orders of rows, which OVN chooses by chance.
const keptFile = "test/oracle/sets/recorded.tar.xz"

// unpackKept unpacks the kept sets of the repository at top into an empty folder. used is false, and out has the reason,
// if they were made by another recipe.
func unpackKept(ctx context.Context, top, recipe, folder string, out io.Writer) (used bool, err error) {
	archive := filepath.Join(top, keptFile)
	if _, err := command.Run(ctx, command.Command{Argv: []string{"tar", "-xJf", archive, "-C", folder}}); err != nil {
		return false, fmt.Errorf("the kept sets: %w", err)
	}
	wrong := intact(folder, recipe)
	if wrong == nil {
		fmt.Fprintln(out, "sets: those of", keptFile)
		return true, errors.Join(os.Remove(filepath.Join(folder, madeOfFile)), os.Remove(filepath.Join(folder, sumsFile)))
	}
	fmt.Fprintf(out, "sets: recorded, because those of %s do not fit this machine or its lab: %v\n", keptFile, wrong)
	if err := os.RemoveAll(folder); err != nil {
		return false, err
	}
	return false, os.Mkdir(folder, 0o755)
}

// Keep records all sets anew, and replaces the kept ones of the repository at top. What is done goes to out.
func Keep(ctx context.Context, top string, out io.Writer) (err error) {
	recipe, names, err := recipeOf(ctx, top, out)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sets.") // the folder's path is part of what nodes print
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	folder := filepath.Join(dir, "recorded")
	if err := keep(folder, recipe, out, func(staged string) error {
		return recordAll(ctx, labOf(top), names, staged, &lines{out: out})
	}); err != nil {
		return err
	}
	_, err = command.Run(ctx, command.Command{Argv: []string{"tar", "-cJf", filepath.Join(top, keptFile), "--sort=name", "--owner=0", "--group=0",
		"--numeric-owner", "-C", folder, "."}})
	return err
}
