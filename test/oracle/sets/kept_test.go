package sets

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// top is the path of the repository for the tests of this package.
const top = "../../.."

// TestKeptSetsAreOfThisLab checks that the kept sets were recorded by the lab of this commit. `make sets` records them.
func TestKeptSetsAreOfThisLab(t *testing.T) {
	printed, err := exec.Command("tar", "-xJOf", filepath.Join(top, keptFile), "./"+madeOfFile).Output()
	if err != nil {
		t.Fatal(err)
	}
	now, err := madeOf(t.Context(), top, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := func(recipe string) string {
		return strings.Join(regexp.MustCompile(`(?m)^[0-9a-f]{64}  .*$`).FindAllString(recipe, -1), "\n")
	}
	expect.Equal(t, files(string(printed)), files(now), "the files that the kept sets were made by")
}

// TestKeptSetsOfAnotherRecipeAreNotUsed unpacks the kept sets where other programs are installed, and where the same are.
func TestKeptSetsOfAnotherRecipeAreNotUsed(t *testing.T) {
	recipe, err := exec.Command("tar", "-xJOf", filepath.Join(top, keptFile), "./"+madeOfFile).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, recipe string
		used         bool
	}{{"the same", string(recipe), true}, {"another ovs-vswitchd", string(recipe) + "9.9", false}} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "staged")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			used, err := unpackKept(context.Background(), top, c.recipe, folder, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			_, missing := os.Stat(filepath.Join(folder, "openstack", "packets.json"))
			if used != c.used || (missing == nil) != c.used {
				t.Errorf("used %v, openstack/packets.json: %v", used, missing)
			}
		})
	}
}
