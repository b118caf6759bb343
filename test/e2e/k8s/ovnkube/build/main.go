// Command build builds OVN-Kubernetes from its Go module into a folder, for the rig:
// ovnkube, its network plugin, and the custom resource definitions of it and of those
// modules whose resources it watches:
//
//	cd test/e2e/k8s && go run ./ovnkube/build FOLDER [MODULE@VERSION]
//
// What the folder has of the version is not built again.
//
// ovnkube is changed in two places: where the kernel has no VRFs, a bridge takes the
// place of a VRF's device (no pod's traffic passes it); and it does not follow the
// restarts of a kubelet by systemd.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Versions of the modules.
const (
	release    = "github.com/ovn-kubernetes/ovn-kubernetes/go-controller@v0.0.0-20260303063950-da86b2aa2ff0"
	generator  = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.19.0"
	policies   = "sigs.k8s.io/network-policy-api@v0.1.7"
	attachment = "github.com/k8snetworkplumbingwg/network-attachment-definition-client@v1.7.7"
	multi      = "github.com/k8snetworkplumbingwg/multi-networkpolicy@v1.0.1"
	claims     = "github.com/k8snetworkplumbingwg/ipamclaims@v0.5.1-alpha"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: build FOLDER [MODULE@VERSION]")
		os.Exit(2)
	}
	if err := run(os.Args[1], append(os.Args[2:], release)[0]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(folder, release string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	mark := filepath.Join(folder, "version")
	if have, err := os.ReadFile(mark); err == nil && string(have) == release {
		return nil
	}
	crds := filepath.Join(folder, "crds")
	if err := os.MkdirAll(crds, 0o755); err != nil {
		return err
	}
	source, err := download(release)
	if err != nil {
		return err
	}
	changed := filepath.Join(folder, "source")
	defer os.RemoveAll(changed)
	if err := copySource(source, changed); err != nil {
		return err
	}
	for _, program := range []string{"ovnkube", "ovn-k8s-cni-overlay"} {
		if err := command(changed, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(folder, program), "./cmd/"+program); err != nil {
			return err
		}
	}
	if err := command(changed, "go", "run", generator, "crd", "paths=./pkg/crd/...", "output:crd:dir="+crds); err != nil {
		return err
	}
	if err := copyDefinitions(crds); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(release), 0o644)
}

// change adds lines at the beginning of a function.
type change struct{ file, function, lines string }

var changes = []change{
	{"pkg/node/vrfmanager/vrf_manager.go", "func (vrfm *Controller) sync(vrf vrf) error {\n", "\tif err, done := vrfm.syncBridge(vrf); done {\n\t\treturn err\n\t}\n"},
	{"pkg/node/udn_isolation.go", "func (m *UDNHostIsolationManager) runKubeletRestartTracker(ctx context.Context) (err error) {\n", "\treturn nil\n"},
}

// bridge is the file that the changes need, and addedAs is its place in the module, whose name it has in
// place of placeholder.
const (
	bridge      = "ovnkube/build/testdata/bridge.go"
	addedAs     = "pkg/node/vrfmanager/bridge.go"
	placeholder = "MODULE"
)

// copySource copies the module to a new folder, and changes it there.
func copySource(module, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.CopyFS(folder, os.DirFS(module)); err != nil {
		return err
	}
	for _, c := range changes {
		path := filepath.Join(folder, c.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Count(text, []byte(c.function)) != 1 {
			return fmt.Errorf("%s: no such function, or several: %s", c.file, strings.TrimSpace(c.function))
		}
		if err := write(path, bytes.Replace(text, []byte(c.function), []byte(c.function+c.lines), 1)); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(bridge)
	if err != nil {
		return err
	}
	name, err := exec.Command("go", "list", "-C", folder, "-m").Output()
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	return write(filepath.Join(folder, addedAs), bytes.ReplaceAll(text, []byte(placeholder), bytes.TrimSpace(name)))
}

// write writes a file, in place of a read-only one.
func write(path string, text []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// copyDefinitions copies the custom resource definitions of other modules.
func copyDefinitions(crds string) error {
	for module, pattern := range map[string]string{
		policies:   "config/crd/standard/policy*.yaml",
		attachment: "artifacts/networks-crd.yaml",
		multi:      "scheme.yml",
		claims:     "artifacts/*.yaml",
	} {
		source, err := download(module)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s has no %s", module, pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + ".yaml"
			if err := write(filepath.Join(crds, name), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// download returns the folder of a module in the cache of modules.
func download(module string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Env = append(os.Environ(), "GONOSUMDB=github.com/ovn-kubernetes/*,github.com/ovn-org/*", "GOFLAGS=-mod=mod")
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

func command(dir, name string, args ...string) error {
	command := exec.Command(name, args...)
	command.Dir, command.Stdout, command.Stderr = dir, os.Stderr, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	return command.Run()
}
