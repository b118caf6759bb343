// Command build builds kube-ovn from its Go module into a folder, for the rig: its
// controller, its daemon, its network plugin, and its custom resource definitions, which
// are those of its Helm chart:
//
//	cd test/e2e/k8s && go run ./kubeovn/build FOLDER [MODULE@VERSION]
//
// What the folder has of the version is not built again.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/test/e2e/k8s/modules"
)

// The module, and where its chart has the definitions.
const (
	release     = "github.com/kubeovn/kube-ovn@v1.14.10"
	definitions = "charts/kube-ovn/templates/kube-ovn-crd.yaml"
)

func main() { modules.Main(release, build) }

func build(folder, release string) error {
	source, err := modules.Download(release)
	if err != nil {
		return err
	}
	for program, file := range map[string]string{"controller": "kube-ovn-controller", "daemon": "kube-ovn-daemon", "cni": "kube-ovn"} {
		if err := modules.Build(source, "./cmd/"+program, filepath.Join(folder, file)); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(source, definitions))
	if err != nil {
		return err
	}
	if strings.Contains(string(text), "{{") {
		return fmt.Errorf("%s: has instructions of a template", definitions)
	}
	return modules.Write(filepath.Join(folder, "crds", "kube-ovn.yaml"), text)
}
