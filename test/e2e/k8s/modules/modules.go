// Package modules builds the programs of a Go module into a folder, for a rig.
package modules

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Main runs the command of a builder, whose arguments are a folder and optionally another release of
// the module, MODULE@VERSION. What the folder has of the release is not built again.
func Main(release string, build func(folder, release string) error) {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: build FOLDER [MODULE@VERSION]")
		os.Exit(2)
	}
	if err := once(os.Args[1], append(os.Args[2:], release)[0], build); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// once builds what the folder has not, and notes its release.
func once(folder, release string, build func(folder, release string) error) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	mark := filepath.Join(folder, "version")
	if have, err := os.ReadFile(mark); err == nil && string(have) == release {
		return nil
	}
	definitions := filepath.Join(folder, "crds")
	if err := os.RemoveAll(definitions); err != nil {
		return err
	}
	if err := os.MkdirAll(definitions, 0o755); err != nil {
		return err
	}
	if err := build(folder, release); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(release), 0o644)
}

// Copy copies the folder of a module, whose files are read-only, to a folder that is made anew.
func Copy(module, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.CopyFS(folder, os.DirFS(module))
}

// Write writes a file, in place of a read-only one.
func Write(path string, text []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// Download returns the folder of a module, PATH@VERSION, in the cache of modules.
func Download(module string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Env = append(os.Environ(), "GONOSUMDB=github.com/ovn-kubernetes/*,github.com/ovn-org/*,github.com/kubeovn/*", "GOFLAGS=-mod=mod")
	command.Dir = os.TempDir() // in no module
	out, err := command.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil {
		return "", errors.Join(fmt.Errorf("go mod download %s", module), err, jsonErr)
	}
	if answer.Error != "" {
		return "", fmt.Errorf("go mod download %s: %s", module, answer.Error)
	}
	return answer.Dir, nil
}

// Build builds a program, which is a package of a module, into a file.
func Build(module, program, file string) error {
	return Run(module, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, program)
}

// Run runs a command of Go in a module.
func Run(module, name string, args ...string) error {
	command := exec.Command(name, args...)
	command.Dir, command.Stdout, command.Stderr = module, os.Stderr, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if err := command.Run(); err != nil {
		return fmt.Errorf("%q: %w", command.Args, err)
	}
	return nil
}
