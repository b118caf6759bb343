package build

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"ovs-offline/internal/command"
)

//go:embed imports.py
var listImports string

// addPythonScript adds a Python script, its interpreter and the modules that it
// imports. A complete Python would be as large as the rest of the image. Modules in the
// folder library, "" for none, are preferred to installed ones.
func (f files) addPythonScript(ctx context.Context, path, library string) error {
	loader, err := f.addProgram(ctx, path)
	if err != nil {
		return err
	}
	python, err := scriptInterpreter(path)
	if err != nil {
		return err
	}
	// With -I, Python imports nothing from the caller's environment or folder.
	argv := []string{python, "-I", "-B", "-c", listImports, path}
	if library != "" {
		argv = append(argv, library)
	}
	out, err := command.Run(ctx, command.Command{Argv: argv, Env: []string{"LC_ALL=C.UTF-8"}, Dir: "/"})
	if err != nil {
		return fmt.Errorf("finding the modules of %s: %w", path, err)
	}
	packages, modules, _ := strings.Cut(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if library != "" {
		f.moved[library] = packages
	}
	for module := range strings.SplitSeq(modules, "\x00") {
		real, err := f.add(module)
		if err == nil && filepath.Ext(real) == ".so" && loader != "" {
			err = f.addLibraries(ctx, loader, real)
		}
		if err != nil {
			return fmt.Errorf("finding the modules of %s: %w", path, err)
		}
	}
	return nil
}
