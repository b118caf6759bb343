package build

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/command"
)

// addProgram adds a program of this host with its libraries and loader, or with its
// interpreter if it is a script. It returns the loader, "" if none is needed.
func (f files) addProgram(ctx context.Context, path string) (loader string, err error) {
	real, err := f.add(path)
	if err != nil {
		return "", err
	}
	interpreter, err := scriptInterpreter(real)
	if err != nil {
		return "", err
	}
	if interpreter != "" {
		return f.addProgram(ctx, interpreter)
	}
	loader, err = loaderOf(real)
	if err != nil || loader == "" {
		return "", err
	}
	return loader, f.addLibraries(ctx, loader, real)
}

// addLibraries adds the loader and the libraries that it would load for an ELF file.
// It asks the loader, which knows its cache and all search paths.
func (f files) addLibraries(ctx context.Context, loader, path string) error {
	if _, err := f.add(loader); err != nil {
		return err
	}
	out, err := command.Run(ctx, command.Command{Argv: []string{loader, "--list", path}, Env: []string{"LC_ALL=C"}})
	if err != nil {
		return fmt.Errorf("finding the libraries of %s: %w", path, err)
	}
	for line := range strings.Lines(string(out)) {
		library, err := listedLibrary(line)
		if err == nil && library != "" {
			_, err = f.add(library)
		}
		if err != nil {
			return fmt.Errorf("finding the libraries of %s: %w", path, err)
		}
	}
	return nil
}

// listedLibrary returns the path in a line of the loader's list: "libm.so.6 =>
// /lib/libm.so.6 (0x0000...)"; "" for the library of the kernel, which is not a file.
func listedLibrary(line string) (string, error) {
	name, path, arrow := strings.Cut(strings.TrimSpace(line), " => ")
	if !arrow {
		path = name
	}
	if path == "not found" {
		return "", fmt.Errorf("%s is not installed", name)
	}
	path, _, _ = strings.Cut(path, " (")
	if !filepath.IsAbs(path) {
		return "", nil
	}
	return path, nil
}

// scriptInterpreter returns the interpreter in the first line of a script, "" if
// the file is not a script.
func scriptInterpreter(path string) (string, error) {
	program, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer program.Close()
	head := make([]byte, 256)
	size, _ := program.Read(head)
	line, isScript := bytes.CutPrefix(head[:size], []byte("#!"))
	if !isScript {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 || !filepath.IsAbs(words[0]) || filepath.Base(words[0]) == "env" {
		return "", fmt.Errorf("%s: the first line has no path of an interpreter", path)
	}
	return words[0], nil
}

// loaderOf returns the loader of an ELF program, "" for a statically linked one.
func loaderOf(path string) (string, error) {
	program, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is neither a program nor a script: %w", path, err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(segment.Open())
		if err != nil {
			return "", fmt.Errorf("%s: its loader: %w", path, err)
		}
		return string(bytes.TrimRight(name, "\x00")), nil
	}
	return "", nil
}
