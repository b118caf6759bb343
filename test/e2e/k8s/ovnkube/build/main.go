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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ovs-offline/test/e2e/k8s/modules"
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

func main() { modules.Main(release, build) }

func build(folder, release string) error {
	source, err := modules.Download(release)
	if err != nil {
		return err
	}
	changed := filepath.Join(folder, "source")
	defer os.RemoveAll(changed)
	if err := copySource(source, changed); err != nil {
		return err
	}
	for _, program := range []string{"ovnkube", "ovn-k8s-cni-overlay"} {
		if err := modules.Build(changed, "./cmd/"+program, filepath.Join(folder, program)); err != nil {
			return err
		}
	}
	crds := filepath.Join(folder, "crds")
	if err := modules.Run(changed, "go", "run", generator, "crd", "paths=./pkg/crd/...", "output:crd:dir="+crds); err != nil {
		return err
	}
	return copyDefinitions(crds)
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
func copySource(source, folder string) error {
	if err := modules.Copy(source, folder); err != nil {
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
		if err := modules.Write(path, bytes.Replace(text, []byte(c.function), []byte(c.function+c.lines), 1)); err != nil {
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
	return modules.Write(filepath.Join(folder, addedAs), bytes.ReplaceAll(text, []byte(placeholder), bytes.TrimSpace(name)))
}

// copyDefinitions copies the custom resource definitions of other modules.
func copyDefinitions(crds string) error {
	for module, pattern := range map[string]string{
		policies:   "config/crd/standard/policy*.yaml",
		attachment: "artifacts/networks-crd.yaml",
		multi:      "scheme.yml",
		claims:     "artifacts/*.yaml",
	} {
		source, err := modules.Download(module)
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
			if err := modules.Write(filepath.Join(crds, name), text); err != nil {
				return err
			}
		}
	}
	return nil
}
