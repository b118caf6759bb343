package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	utilexec "k8s.io/utils/exec"
)

// Mount is a file or folder of the host inside a container.
type Mount struct {
	Host, Container string
	ReadOnly        bool
}

// Container is a root file system in its own mount namespace, which an idle process
// holds open.
type Container struct {
	Root string
	Env  []string

	init  *exec.Cmd
	alive io.Closer // closing it ends the container

	mu      sync.Mutex
	running map[*exec.Cmd]bool
}

// programs are the programs of an image: those of any distribution's image, and the
// tools of OVS and OVN, but no tar, gzip or ovs-save. (The script that replaces
// ovs-appctl needs awk.)
var programs = []string{
	"bash", "dash", "cat", "cksum", "tee", "head", "tail", "cut", "tr", "sort", "wc", "printf", "echo", "test", "[", "env", "expr",
	"sleep", "date", "ls", "mkdir", "mktemp", "rm", "rmdir", "cp", "mv", "ln", "touch", "chmod", "stat", "readlink", "dd", "od", "uname",
	"hostname", "sed", "grep", "mkfifo", "timeout", "true", "false", "id", "pwd", "uniq", "basename", "dirname", "awk",
	"ovs-vsctl", "ovs-appctl", "ovs-ofctl", "ovs-dpctl", "ovsdb-client", "ovsdb-tool", "ovn-nbctl", "ovn-sbctl", "ovn-appctl",
}

// script makes the mounts in its arguments and becomes the container's first process.
const script = `set -e
root=$1
shift
while [ $# -gt 0 ]; do
    mount --rbind "$1" "$root$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
    shift 3
done
echo up
exec chroot "$root" /usr/bin/cat`

// Image is a folder with the programs of a container.
type Image string

// NewImage makes an image in the new folder dir. Distributions differ in the shell that
// is their sh.
func NewImage(dir, shell string) (Image, error) {
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
	return Image(dir), os.Symlink(shell, filepath.Join(dir, "sh"))
}

// NewContainer makes a container in the new folder dir.
func NewContainer(dir string, image Image, mounts ...Mount) (*Container, error) {
	c := &Container{
		Root:    dir,
		Env:     []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
		running: map[*exec.Cmd]bool{},
	}
	if err := c.populate(); err != nil {
		return nil, err
	}
	mounts = append([]Mount{{Host: string(image), Container: "/usr/bin", ReadOnly: true}}, mounts...)
	mounts = append(system(), mounts...)
	args := Unshare("--mount", "--propagation", "private", "sh", "-c", script, "sh", dir)
	for _, m := range mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		if err := c.mountPoint(m); err != nil {
			return nil, err
		}
		args = append(args, m.Host, m.Container, mode)
	}
	return c, c.start(args)
}

// Unshare returns the arguments of unshare(1) for a namespace and a command. Users
// other than root also need a user namespace.
func Unshare(args ...string) []string {
	if os.Geteuid() == 0 {
		return args
	}
	return append([]string{"--user", "--map-root-user"}, args...)
}

// system returns the mounts of the machine that each container has.
func system() []Mount {
	mounts := []Mount{{Host: "/proc", Container: "/proc"}}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		mounts = append(mounts, Mount{Host: "/dev/" + name, Container: "/dev/" + name})
	}
	for _, folder := range []string{"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/openvswitch", "/usr/share/ovn"} {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			mounts = append(mounts, Mount{Host: real, Container: folder, ReadOnly: true})
		}
	}
	return mounts
}

// populate makes the container's own files.
func (c *Container) populate() error {
	for _, folder := range []string{"usr/bin", "usr/sbin", "usr/local/bin", "etc", "dev", "proc", "run", "var/lib", "var/log", "var/tmp", "tmp", "root"} {
		if err := os.MkdirAll(filepath.Join(c.Root, folder), 0o755); err != nil {
			return err
		}
	}
	for _, folder := range []string{"tmp", "var/tmp"} {
		if err := os.Chmod(filepath.Join(c.Root, folder), 0o1777); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"bin": "usr/bin", "sbin": "usr/sbin", "var/run": "../run",
		"dev/fd": "/proc/self/fd", "dev/stdin": "/proc/self/fd/0", "dev/stdout": "/proc/self/fd/1", "dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(c.Root, name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.Root, "etc/passwd"), []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644)
}

func (c *Container) mountPoint(m Mount) error {
	point := filepath.Join(c.Root, m.Container)
	info, err := os.Stat(m.Host)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(point, 0o755)
	}
	if err = os.MkdirAll(filepath.Dir(point), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(point, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (c *Container) start(args []string) error {
	var complaints strings.Builder
	c.init = exec.Command("unshare", args...)
	c.init.Stderr = &complaints
	in, err := c.init.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.init.StdoutPipe()
	if err != nil {
		return err
	}
	if err = c.init.Start(); err != nil {
		return err
	}
	c.alive = in
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		in.Close()
		c.init.Wait()
		return fmt.Errorf("container %s did not start: %s", c.Root, complaints.String())
	}
	return nil
}

// exec runs a command in the container as a container runtime does: if the client
// disconnects, the command gets a closed pipe and is not ended otherwise. Closing kill
// ends it, as the end of the container would.
func (c *Container) exec(argv []string, in io.Reader, out, errOut io.Writer, kill <-chan struct{}) error {
	enter := []string{"--target", strconv.Itoa(c.init.Process.Pid), "--mount", "--root", "--wd"}
	if os.Geteuid() != 0 {
		enter = append(enter, "--user", "--preserve-credentials")
	}
	if !c.has(argv[0]) {
		return fmt.Errorf("exec failed: unable to start container process: exec: %q: executable file not found in $PATH", argv[0])
	}
	command := exec.Command("nsenter", append(append(enter, "--"), argv...)...)
	command.Env, command.Stdin = c.Env, in
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var pumps sync.WaitGroup
	var ends []io.Closer
	for _, stream := range []struct {
		field *io.Writer
		to    io.Writer
	}{{&command.Stdout, out}, {&command.Stderr, errOut}} {
		if stream.to == nil {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		*stream.field = w
		ends = append(ends, w)
		pumps.Go(func() {
			io.Copy(stream.to, r)
			r.Close()
		})
	}
	c.mu.Lock()
	err := command.Start()
	c.running[command] = err == nil
	c.mu.Unlock()
	for _, w := range ends {
		w.Close()
	}
	if err == nil {
		ended := make(chan struct{})
		go func() {
			select {
			case <-kill:
				syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			case <-ended:
			}
		}()
		pumps.Wait()
		close(ended)
		err = command.Wait()
	}
	c.mu.Lock()
	delete(c.running, command)
	c.mu.Unlock()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := exit.ExitCode()
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
			code = 128 + int(status.Signal())
		}
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return err
}

func (c *Container) has(program string) bool {
	for _, folder := range []string{"", "usr/local/bin", "usr/bin"} {
		if strings.Contains(program, "/") != (folder == "") {
			continue
		}
		root := "/proc/" + strconv.Itoa(c.init.Process.Pid) + "/root"
		if _, err := os.Lstat(filepath.Join(root, folder, program)); err == nil {
			return true
		}
	}
	return false
}

// Run runs a command in the container directly, not through the cluster.
func (c *Container) Run(_ context.Context, argv ...string) (string, error) {
	var out, complaints strings.Builder
	if err := c.exec(argv, nil, &out, &complaints, nil); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, complaints.String())
	}
	return out.String(), nil
}

// Processes returns the command lines of the container's processes except the first.
func (c *Container) Processes() []string {
	namespace := func(pid string) string {
		link, err := os.Readlink("/proc/" + pid + "/ns/mnt")
		if err != nil {
			return ""
		}
		return link
	}
	first := strconv.Itoa(c.init.Process.Pid)
	here := namespace(first)
	entries, err := os.ReadDir("/proc")
	if err != nil || here == "" {
		return []string{"(unknown)"}
	}
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || e.Name() == first || namespace(e.Name()) != here {
			continue
		}
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && len(line) > 0 {
			found = append(found, strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " "))
		}
	}
	return found
}

// Stop ends the container and its processes.
func (c *Container) Stop() {
	c.mu.Lock()
	for command, runs := range c.running {
		if runs {
			syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}
	}
	c.mu.Unlock()
	c.alive.Close()
	c.init.Wait()
}
