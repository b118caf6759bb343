// Package process runs a replica's daemons as local processes, each in an empty user
// and network namespace of its own where the system allows that.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ovs-offline/replica/runtime"
)

// Name is the name of the runtime, as the command line spells it.
const Name = "process"

// WrapperMark is the name of a file that marks a directory of a replica's wrappers.
// A search for tools skips the directory: a wrapper runs the tool on its own replica.
const WrapperMark = ".ovs-offline-wrappers"

// Find returns the path of a program of this host. It searches PATH and then the
// directories of system programs, which an ordinary user's PATH often lacks. The error for
// a missing program names its package, if it is one of OVS or OVN, and wraps runtime.ErrNotInstalled and
// exec.ErrNotFound.
func Find(program string) (string, error) {
	if strings.ContainsRune(program, '/') {
		return program, nil
	}
	for _, dir := range searchPath() {
		if _, err := os.Lstat(filepath.Join(dir, WrapperMark)); err == nil {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	hint := ""
	if strings.HasPrefix(program, "ovs") || strings.HasPrefix(program, "ovn") {
		hint = ": " + PackageHint(program)
	}
	return "", fmt.Errorf("%s is %w%s (%w)", program, runtime.ErrNotInstalled, hint, exec.ErrNotFound)
}

// FindIn returns the path of a program below the root of an image, in which it searches
// the directories of system programs. The error for a missing program wraps
// runtime.ErrNotInstalled and exec.ErrNotFound.
func FindIn(root, program string) (string, error) {
	if strings.ContainsRune(program, '/') {
		return program, nil
	}
	for _, dir := range SystemPath() {
		path := filepath.Join(dir, program)
		if file, err := resolve(root, path); err == nil && isProgram(file) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w in the image at %s (%w)", program, runtime.ErrNotInstalled, root, exec.ErrNotFound)
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Missing returns nil if all programs are installed on this host, else an error that
// names each missing program and its package.
func Missing(programs ...string) error {
	var missing []error
	for _, program := range programs {
		if _, err := Find(program); err != nil {
			missing = append(missing, err)
		}
	}
	return errors.Join(missing...)
}

// Packages returns the distribution packages that contain a program.
func Packages(program string) (debian, fedora string) {
	switch {
	case program == "ovs-vswitchd", program == "ovs-vsctl":
		return "openvswitch-switch", "openvswitch"
	case program == "ovn-controller":
		return "ovn-host", "ovn-host"
	case program == "ovn-northd":
		return "ovn-central", "ovn-central"
	case strings.HasPrefix(program, "ovn-"):
		return "ovn-common", "ovn"
	}
	return "openvswitch-common", "openvswitch"
}

// PackageHint returns a sentence with the distribution packages of a program.
func PackageHint(program string) string {
	debian, fedora := Packages(program)
	if program == "ovn-detrace" {
		debian, fedora = debian+" (it also needs python3-openvswitch)", fedora+" (and python3-openvswitch)"
	}
	return "Debian and Ubuntu have it in " + debian + ", Fedora in " + fedora
}

// searchPath returns the absolute directories in the caller's PATH, and in
// system programs.
func searchPath() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, SystemPath()...)
}

// SystemPath returns the directories of system programs, and so the PATH in an image.
func SystemPath() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// pathVariable returns the PATH of programs in the root file system in the folder root; ""
// for the tools of this host.
func pathVariable(root string) string {
	if root != "" {
		return strings.Join(SystemPath(), ":")
	}
	return strings.Join(searchPath(), ":")
}
