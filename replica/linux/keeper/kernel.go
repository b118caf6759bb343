//go:build linux

package keeper

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// kernel is what this machine's kernel has already, so that nothing restored makes it load a module.
type kernel struct {
	all     bool            // it loads no modules
	modules map[string]bool // loaded and built in ones, with "_" for "-"
	taken   atomic.Int64    // bytes of memory: see take
}

// readKernel reads which modules are loaded or built in.
func readKernel() *kernel {
	k := &kernel{modules: map[string]bool{}}
	loaded, err := os.ReadFile("/proc/modules")
	if err != nil {
		k.all = true
		return k
	}
	for line := range strings.Lines(string(loaded)) {
		name, _, _ := strings.Cut(line, " ")
		k.add(name)
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		release := unix.ByteSliceToString(name.Release[:])
		for _, folder := range []string{"/lib/modules", "/usr/lib/modules"} {
			builtin, _ := os.ReadFile(filepath.Join(folder, release, "modules.builtin"))
			for line := range strings.Lines(string(builtin)) {
				k.add(strings.TrimSuffix(filepath.Base(strings.TrimSpace(line)), ".ko"))
			}
		}
	}
	return k
}

func (k *kernel) add(module string) { k.modules[strings.ReplaceAll(module, "-", "_")] = true }

// has reports whether one of several modules, which do the same in different kernels, is there.
func (k *kernel) has(modules ...string) bool {
	if k.all {
		return true
	}
	for _, module := range modules {
		if k.modules[module] {
			return true
		}
		if _, err := os.Stat("/sys/module/" + module); err == nil {
			return true
		}
	}
	return false
}

// missing returns the first of several modules that is not there, "" if all are.
func (k *kernel) missing(modules ...string) string {
	for _, module := range modules {
		if !k.has(strings.Split(module, "|")...) {
			return module
		}
	}
	return ""
}
