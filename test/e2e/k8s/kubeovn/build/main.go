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

// release is the module's.
const release = "github.com/kubeovn/kube-ovn@v1.14.10"

// definitions are the module's files with its custom resource definitions, and with those of
// AdminNetworkPolicies that it knows.
func definitions() []string {
	return []string{"charts/kube-ovn/templates/kube-ovn-crd.yaml", "yamls/adminnetworkpolicies-experimental.yaml", "yamls/baselineadminnetworkpolicies-experimental.yaml"}
}

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
	for _, file := range definitions() {
		text, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "{{") {
			return fmt.Errorf("%s: has instructions of a template", file)
		}
		if err := modules.Write(filepath.Join(folder, "crds", filepath.Base(file)), text); err != nil {
			return err
		}
	}
	return nil
}
