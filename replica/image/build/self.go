package build

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"ovs-offline/replica/runtime/process"
)

// gatherScript is the program that `oc adm must-gather --image` runs.
//
//go:embed gather
var gatherScript string

// The files of ovs-offline in an image.
const (
	selfFile   = "/usr/bin/ovs-offline"
	gatherFile = "/usr/bin/gather"
)

// labelSelf is the label with the version of the ovs-offline that an image holds.
const labelSelf = "ovs-offline.holds"

// home is HOME in an image that holds ovs-offline: in a pod, the image is read-only, and
// its /etc/passwd does not have the user.
const home = "/tmp"

// certificates are the files of Debian and Fedora in which Go looks for certificates of
// authorities.
var certificates = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"}

// running is the file of this program, also once its path is another's.
const running = "/proc/self/exe"

// self is this program with its files, a layer of their own, which images of different
// versions of Open vSwitch and OVN have in common.
type self struct {
	version string
	files   files
}

// findSelf returns this program for an image of an architecture, as Go names it. version
// is the version of ovs-offline.
func findSelf(version, architecture string) (*self, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != architecture {
		return nil, fmt.Errorf("this ovs-offline is built for %s/%s: an image for linux/%s gets it where it is built with the one for that platform",
			runtime.GOOS, runtime.GOARCH, architecture)
	}
	loader, err := loaderOf(running)
	if err != nil {
		return nil, err
	}
	if loader != "" {
		return nil, errors.New("this ovs-offline needs libraries of this machine: build it with make, or with CGO_ENABLED=0")
	}
	info, err := os.Stat(running)
	if err != nil {
		return nil, err
	}
	return &self{version: version, files: files{entries: map[string]fileEntry{
		selfFile:   {mode: 0o755, source: running, size: info.Size()},
		gatherFile: {mode: 0o755, content: gatherScript, size: int64(len(gatherScript))},
	}}}, nil
}

// selfLacks describes why an image lacks this program.
func selfLacks(err error) string { return fmt.Sprintf("ovs-offline: %v", err) }

// AddSelf adds this program to the image, so that it can run in a pod. version is the
// version of ovs-offline. An image of this machine's files also gets the programs with which
// data is collected from a cluster. LeftOut has what can't be added, with the reason.
func (c *Content) AddSelf(ctx context.Context, version string) error {
	found, err := findSelf(version, runtime.GOARCH)
	if err != nil {
		c.LeftOut = append(c.LeftOut, selfLacks(err))
		return nil
	}
	c.self = found
	if c.made == madeFromImage {
		return nil
	}
	c.addCertificates()
	return c.addOptionalTools(ctx, gathering, process.Find)
}

// addCertificates adds the certificates of the authorities that this machine trusts, with
// which ovs-offline connects to registries and clusters.
func (c *Content) addCertificates() {
	for _, bundle := range certificates {
		if _, err := c.files.add(bundle); err == nil {
			return
		}
	}
	c.LeftOut = append(c.LeftOut, fmt.Sprintf("certificates of authorities: this machine has neither %s: install ca-certificates", strings.Join(certificates, " nor ")))
}

// writeFolder writes the files into a folder, each by the last part of its path.
func (s *self) writeFolder(folder string) error {
	for path, added := range s.files.entries {
		if err := added.writeFile(filepath.Join(folder, filepath.Base(path))); err != nil {
			return fmt.Errorf("copying %s: %w", path, err)
		}
	}
	return nil
}

// instructions returns the lines of a Containerfile that add the files of writeFolder.
func (s *self) instructions() string {
	var lines strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s.files.entries)) {
		fmt.Fprintf(&lines, "COPY %s %s\n", filepath.Base(path), path)
	}
	return lines.String() + "ENV HOME=" + home + "\n"
}

func (e fileEntry) writeFile(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(e.copyTo(file), file.Chmod(e.mode), file.Close())
}
