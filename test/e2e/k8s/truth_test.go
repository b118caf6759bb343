package k8s

import (
	"os/exec"
	"path/filepath"
	"testing"

	"ovs-offline/test/oracle/fidelity"
)

// checkTruth compares the dumps of ovs-ofctl on the live node with those on the
// replica in dir.
func checkTruth(t *testing.T, dir, truth string) {
	t.Helper()
	differ, err := fidelity.Truth(truth, func(args ...string) (string, error) {
		out, err := exec.Command(filepath.Join(dir, "bin/ovs-ofctl"), args...).Output()
		return string(out), err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differ {
		t.Error(d)
	}
}
