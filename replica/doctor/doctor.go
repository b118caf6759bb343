// Package doctor checks which parts of ovs-offline work on this machine, and names for
// each other part the command that makes it work. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/replica"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/workdir"
)

// Check is the result of one check.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	What  string `json:"what"`
	// Mend is a command or an advice that makes the checked part work.
	Mend string `json:"mend,omitempty"`
}

// State is the outcome of a check.
type State string

// The outcomes. Absent parts are optional.
const (
	Works  State = "works"
	Absent State = "absent"
	Broken State = "broken"
)

// Report holds the results of all checks.
type Report struct {
	Checks []Check `json:"checks"`
	// Start describes the runtime that start would choose; "" if it would fail.
	Start string `json:"start,omitempty"`
}

// Examine runs all checks for a replica of the workdir at path in the runtime of
// that name. Each check takes a few seconds at most.
func Examine(ctx context.Context, path, runtimeName, version string) Report {
	var report Report
	report.Checks = append(report.Checks, checkWorkdir(path))
	if err := process.Supported(); err != nil {
		report.Checks = append(report.Checks, Check{Name: "local processes", State: Absent, What: err.Error()})
	} else {
		report.Checks = append(report.Checks, checkTools(ctx)...)
		report.Checks = append(report.Checks, checkNamespaces(ctx), checkLandlock())
	}
	var wanted runtime.Wanted
	wd, unusable := workdir.Find(path)
	if unusable == nil {
		recorded, err := replica.Recorded(ctx, wd)
		wanted.Recorded, unusable = recorded, err
	} else {
		wd = &workdir.Dir{} // the engines can be checked without a workdir
	}
	runtimes := choose.For(wd, version)
	for _, name := range engine.Names() {
		report.Checks = append(report.Checks, checkEngine(ctx, runtimes, name, wanted)...)
	}
	report.Checks = append(report.Checks, checkKubeconfig())
	if choice, err := runtimes.Choose(ctx, runtimeName, wanted); err == nil && unusable == nil {
		report.Start = choice.What
	}
	return report
}

func checkWorkdir(path string) Check {
	check := Check{Name: "working directory", State: Works, What: path + " does not exist yet and will be created"}
	wd, err := workdir.Find(path)
	if err != nil {
		check.State, check.What, check.Mend = Broken, err.Error(), "export OVS_DBG_WORKDIR=$HOME/ovs-offline"
	} else if manifest, err := wd.Manifest(); err != nil {
		check.State, check.What = Broken, err.Error()
	} else if wd.Exists() {
		check.What = fmt.Sprintf("%s holds %d collections", wd.Path(), len(manifest.Collections))
	}
	return check
}

var toolVersion = lazyregexp.New(`[0-9]+\.[0-9]+\.[0-9]+\S*`)

// checkTools checks the programs that local processes need.
func checkTools(ctx context.Context) []Check {
	var checks []Check
	for _, tool := range []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-detrace"} {
		checks = append(checks, checkTool(ctx, tool))
	}
	for _, tool := range []string{"ovn-controller", "ovn-northd"} {
		check := checkTool(ctx, tool)
		if check.State == Absent {
			check.What = "not installed; only drift, what-if and replicas of OVN databases alone need it"
		}
		checks = append(checks, check)
	}
	return checks
}

func checkTool(ctx context.Context, tool string) Check {
	check := Check{Name: tool, State: Works}
	path, err := process.Find(tool)
	if err != nil {
		check.State, check.What, check.Mend = Absent, "not installed; local processes need it, container images include it", install(process.Packages(tool))
		return check
	}
	argument := "--version"
	if tool == "ovn-detrace" {
		argument = "--help" // its --version connects to a database first
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	printed, err := exec.CommandContext(ctx, path, argument).CombinedOutput()
	out := strings.TrimSpace(string(printed))
	check.What = strings.TrimSpace(toolVersion.FindString(out) + " " + path)
	if err != nil {
		check.State, check.What = Broken, fmt.Sprintf("%s %s: %v: %s", path, argument, err, out[strings.LastIndexByte(out, '\n')+1:])
		check.Mend = install(process.Packages(tool))
		if tool == "ovn-detrace" {
			check.Mend = install("python3-openvswitch", "python3-openvswitch")
		}
	}
	return check
}

// install returns the command that installs a package on this machine, by its names
// in Debian and in Fedora.
func install(debian, fedora string) string {
	prefix := ""
	if os.Geteuid() != 0 {
		prefix = "sudo "
	}
	if _, err := exec.LookPath("dnf"); err == nil {
		return prefix + "dnf install " + fedora
	}
	return prefix + "apt install " + debian
}

func checkNamespaces(ctx context.Context) Check {
	check := Check{Name: "namespaces", State: Works, What: "local daemons get an empty network of their own"}
	if ok, why := process.New(process.Options{}).Isolated(ctx); why != "" {
		check.State, check.What = Broken, "local daemons share the host's network: "+why
		if ok {
			check.State, check.What = Absent, "local daemons are kept from all networks "+why
		}
		check.Mend = "sudo sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 (only the settings that this kernel has)"
	}
	return check
}

// checkLandlock checks which version of Landlock the kernel has. Signals need version 6, of Linux 6.12.
func checkLandlock() Check {
	const signals = 6
	check := Check{Name: "landlock", State: Works, What: "local daemons write to the replica's folders only, and signal no other process"}
	version, how := process.Landlock(), "the kernel has none, or lsm= of its command line leaves it out"
	if version > 0 {
		how = fmt.Sprintf("the kernel has version %d of %d", version, signals)
	}
	switch {
	case version == 0:
		check.State, check.What = Absent, "a daemon that is taken over could signal processes of its user and, without namespaces, write its files: "+how
	case version < signals:
		check.State, check.What = Absent, "a daemon that is taken over could signal processes of its user: "+how
	}
	return check
}

// checkEngine checks that an engine answers and has an image.
func checkEngine(ctx context.Context, runtimes *choose.Runtimes, name string, wanted runtime.Wanted) []Check {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answers := Check{Name: name, State: Works, What: "it answers"}
	if _, err := runtimes.Named(ctx, name); err != nil {
		answers.State, answers.What, answers.Mend = Absent, err.Error(), startEngine(name)
		return []Check{answers}
	}
	choice, err := runtimes.Choose(ctx, name, wanted)
	image := Check{Name: name + " image", State: Works, What: choice.What}
	if err != nil {
		image.State, image.What, image.Mend = Absent, err.Error(), "ovs-offline image build --runtime "+name
	}
	return []Check{answers, image}
}

func startEngine(name string) string {
	if _, err := exec.LookPath(name); err != nil {
		name = map[string]string{engine.Podman: "podman", engine.Docker: "docker.io"}[name]
		return install(name, name)
	}
	if name == engine.Docker {
		return "sudo systemctl start docker, as a member of the group docker"
	}
	if os.Geteuid() == 0 {
		return "systemctl start podman.socket"
	}
	return "systemctl --user start podman.socket"
}

// checkKubeconfig reads the configuration that collect-k8s would use. It contacts
// no server.
func checkKubeconfig() Check {
	check := Check{Name: "kubeconfig", State: Works}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	switch {
	case err != nil:
		check.State, check.What, check.Mend = Broken, err.Error(), "export KUBECONFIG=FILE"
	case len(config.Contexts) == 0:
		check.State, check.What, check.Mend = Absent, "no cluster is configured; collect-k8s needs one", "export KUBECONFIG=FILE"
	case config.Contexts[config.CurrentContext] == nil:
		check.State, check.What, check.Mend = Broken, "it has no current context", "kubectl config use-context NAME, or collect-k8s --context NAME"
	default:
		check.What = "context " + config.CurrentContext
	}
	return check
}
