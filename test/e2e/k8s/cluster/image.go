package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// ImageWithoutTools is the image that every node has. It holds the program pause and the
// folders of a root file system, into which containers mount the rest.
const ImageWithoutTools = "localhost/ovs-offline-test:1"

// WriteOtherVersion writes an image to a file, and returns its name. Its ovs-offline is the
// program pause, which says that it is of another version.
func WriteOtherVersion(path, pause string) (name string, err error) {
	const other = "localhost/ovs-offline-other:1"
	return other, writeImage(path, other, pause, [2]string{"usr/bin/ovs-offline", "/pause"})
}

// writeImage writes an image as `docker save` does. pause is the program's file. Each of the
// links is a path and its target.
func writeImage(path, name, pause string, links ...[2]string) error {
	layer, err := rootLayer(pause, links)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Cmd": []string{"/pause"}, "Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var archive tarball
	archive.file("manifest.json", manifest, 0o644)
	archive.file("config.json", config, 0o644)
	archive.file("layer.tar", layer, 0o644)
	text, err := archive.bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func rootLayer(pause string, links [][2]string) ([]byte, error) {
	program, err := os.ReadFile(pause)
	if err != nil {
		return nil, err
	}
	var layer tarball
	for _, folder := range []string{"usr", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/share", "usr/local", "usr/local/bin",
		"etc", "etc/openvswitch", "dev", "proc", "sys", "run", "run/openvswitch", "run/ovn", "var", "var/lib", "var/log", "root"} {
		layer.folder(folder, 0o755)
	}
	layer.folder("tmp", 0o1777)
	layer.folder("var/tmp", 0o1777)
	usual := [][2]string{{"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}, {"var/run", "../run"}}
	for _, link := range append(usual, links...) {
		layer.link(link[0], link[1])
	}
	layer.file("etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644)
	layer.file("pause", program, 0o755)
	return layer.bytes()
}

// tarball is a tar archive in memory.
type tarball struct {
	buffer bytes.Buffer
	writer *tar.Writer
	err    error
}

func (t *tarball) add(header *tar.Header, content []byte) {
	if t.writer == nil {
		t.writer = tar.NewWriter(&t.buffer)
	}
	err := t.writer.WriteHeader(header)
	if err == nil {
		_, err = t.writer.Write(content)
	}
	t.err = errors.Join(t.err, err)
}

func (t *tarball) file(name string, content []byte, mode int64) {
	t.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content)
}

func (t *tarball) folder(name string, mode int64) {
	t.add(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

func (t *tarball) link(name, target string) {
	t.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (t *tarball) bytes() ([]byte, error) {
	if err := errors.Join(t.err, t.writer.Close()); err != nil {
		return nil, err
	}
	return t.buffer.Bytes(), nil
}

// programs are those of any distribution's image, and the tools of OVS and OVN, but no
// tar, gzip or ovs-save. (The script that replaces ovs-appctl needs awk.)
var programs = []string{
	"bash", "dash", "cat", "cksum", "tee", "head", "tail", "cut", "tr", "sort", "wc", "printf", "echo", "test", "[", "env", "expr",
	"sleep", "date", "ls", "mkdir", "mktemp", "rm", "rmdir", "cp", "mv", "ln", "touch", "chmod", "stat", "readlink", "dd", "od", "uname",
	"hostname", "sed", "grep", "mkfifo", "timeout", "true", "false", "id", "pwd", "uniq", "basename", "dirname", "awk",
	"ovs-vsctl", "ovs-appctl", "ovs-ofctl", "ovs-dpctl", "ovsdb-client", "ovsdb-tool", "ovn-nbctl", "ovn-sbctl", "ovn-appctl",
}

// Programs is a folder of this machine with copies of its programs, which a container
// has at /usr/bin; "" is none.
type Programs string

// CopyPrograms copies the programs into the new folder dir. Distributions differ in the
// shell that is their sh; "" leaves it out.
func CopyPrograms(dir, shell string) (Programs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue // commands that need it fail
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if err = os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			return "", err
		}
	}
	if shell == "" {
		return Programs(dir), nil
	}
	return Programs(dir), os.Symlink(shell, filepath.Join(dir, "sh"))
}

// Mount is a file or folder of this machine in a container.
type Mount struct {
	Host, Container string
	ReadOnly        bool
}

// mounts returns the mounts of every container that has the programs: they need the
// libraries and data of this machine.
func (p Programs) mounts() []Mount {
	if p == "" {
		return nil
	}
	list := []Mount{{Host: string(p), Container: "/usr/bin", ReadOnly: true}}
	for _, folder := range []string{"/usr/lib", "/usr/lib64", "/usr/share/openvswitch", "/usr/share/ovn"} {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			list = append(list, Mount{Host: folder, Container: folder, ReadOnly: true})
		}
	}
	return list
}
