package image

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
func (r rootfs) addPythonScript(ctx context.Context, path, library string) error {
	loader, err := r.addProgram(ctx, path)
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
		r.moved[library] = packages
	}
	for module := range strings.SplitSeq(modules, "\x00") {
		real, err := r.add(module)
		if err == nil && filepath.Ext(real) == ".so" && loader != "" {
			err = r.addLibraries(ctx, loader, real)
		}
		if err != nil {
			return fmt.Errorf("finding the modules of %s: %w", path, err)
		}
	}
	return nil
}
