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

// WrapperMark is the name of a file whose presence says that a directory holds
// a replica's tool wrappers. Whoever looks for a real tool skips the directory:
// a wrapper would point the tool at its own replica.
const WrapperMark = ".ovs-offline-wrappers"

// Find returns the path of a program, looked for in PATH and then in the
// directories of system programs, which an ordinary user's PATH often lacks.
// The error for a missing one names the package that has it and wraps
// runtime.ErrNotInstalled and exec.ErrNotFound.
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
	return "", fmt.Errorf("%s is %w: %s (%w)", program, runtime.ErrNotInstalled, PackageHint(program), exec.ErrNotFound)
}

// Missing is nil when all programs are installed, else an error that names
// each missing one and its package.
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

// searchPath is the caller's PATH and the directories of system programs.
// Relative entries are left out: what they mean depends on where one stands.
func searchPath() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
}

func localPath() string { return strings.Join(searchPath(), ":") }
