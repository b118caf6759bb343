// Package doctor finds out what of ovs-offline works on this machine, what does
// not, and which command mends it. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/process"
)

// Check is one thing that was looked at.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	What  string `json:"what"`
	// Mend is the command, or the words, that would make it work.
	Mend string `json:"mend,omitempty"`
}

// State says whether a thing works.
type State string

// Absent is what nobody needs to have.
const (
	Works  State = "works"
	Absent State = "absent"
	Broken State = "broken"
)

// Report is what was found.
type Report struct {
	Checks []Check `json:"checks"`
	// Start says what start would run a replica with; "" if it could not.
	Start string `json:"start,omitempty"`
}

// Examine looks at everything, for a replica of the workdir at path in the
// runtime of a name. Each thing has a few seconds.
func Examine(ctx context.Context, path, runtime, version string) Report {
	var r Report
	r.Checks = append(r.Checks, checkWorkdir(path))
	if err := process.Supported(); err != nil {
		r.Checks = append(r.Checks, Check{Name: "local processes", State: Absent, What: err.Error()})
	} else {
		r.Checks = append(r.Checks, checkTools(ctx)...)
		r.Checks = append(r.Checks, checkNamespaces(ctx))
	}
	var recorded report.Versions
	wd, unusable := workdir.Find(path)
	if unusable == nil {
		recorded, unusable = replica.Recorded(wd)
	} else {
		wd = &workdir.Dir{} // the engines can be asked all the same
	}
	place, wanted := choose.New(wd, version), container.Wanted{RecordedOVS: recorded.OVS}
	for _, name := range []string{choose.Podman, choose.Docker} {
		r.Checks = append(r.Checks, checkEngine(ctx, place, name, wanted)...)
	}
	r.Checks = append(r.Checks, checkKubeconfig())
	if choice, err := place.Choose(ctx, runtime, wanted); err == nil && unusable == nil {
		r.Start = choice.Why
	}
	return r
}

func checkWorkdir(path string) Check {
	c := Check{Name: "working directory", State: Works, What: path + " is not there yet, and will be made"}
	wd, err := workdir.Find(path)
	if err != nil {
		c.State, c.What, c.Mend = Broken, err.Error(), "export OVS_DBG_WORKDIR=$HOME/ovs-offline"
		return c
	}
	if wd.Exists() {
		m, err := wd.Manifest()
		if err != nil {
			c.State, c.What = Broken, err.Error()
			return c
		}
		c.What = fmt.Sprintf("%s holds %d collections", wd.Path(), len(m.Collections))
	}
	return c
}

var toolVersion = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+\S*`)

// checkTools looks for the programs that local processes need.
func checkTools(ctx context.Context) []Check {
	var checks []Check
	for _, tool := range []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-detrace"} {
		c := Check{Name: tool, State: Works}
		path, err := process.Find(tool)
		if err != nil {
			c.State, c.What, c.Mend = Absent, "not installed; local processes need it, containers bring their own", install(tool)
			checks = append(checks, c)
			continue
		}
		argument := "--version"
		if tool == "ovn-detrace" {
			argument = "--help" // its --version connects to a database first
		}
		out, err := run(ctx, path, argument)
		c.What = strings.TrimSpace(toolVersion.FindString(out) + " " + path)
		if err != nil {
			c.State, c.What = Broken, fmt.Sprintf("%s %s: %v: %s", path, argument, err, lastLine(out))
			c.Mend = install(tool)
			if tool == "ovn-detrace" {
				c.Mend = installer() + " python3-openvswitch"
			}
		}
		checks = append(checks, c)
	}
	return checks
}

// run runs a program for a few seconds at the most.
func run(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	return string(out), err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// installer is how packages are installed here.
func installer() string {
	as := ""
	if os.Geteuid() != 0 {
		as = "sudo "
	}
	if _, err := exec.LookPath("dnf"); err == nil {
		return as + "dnf install"
	}
	return as + "apt install"
}

func install(tool string) string {
	debian, fedora := "openvswitch-common", "openvswitch"
	switch {
	case tool == "ovs-vswitchd" || tool == "ovs-vsctl":
		debian = "openvswitch-switch"
	case strings.HasPrefix(tool, "ovn-"):
		debian, fedora = "ovn-common", "ovn"
	}
	if how := installer(); strings.HasSuffix(how, "dnf install") {
		return how + " " + fedora
	} else {
		return how + " " + debian
	}
}

func checkNamespaces(ctx context.Context) Check {
	c := Check{Name: "namespaces", State: Works, What: "local daemons get an empty network of their own"}
	if ok, why := process.New(process.Options{}).Isolated(ctx); !ok {
		c.State, c.What = Broken, "local daemons share the host's network: "+why
		c.Mend = "sudo sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 (those of them that this kernel has)"
	}
	return c
}

// checkEngine looks at an engine and for an image in it.
func checkEngine(ctx context.Context, place *choose.Place, name string, wanted container.Wanted) []Check {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	engine := Check{Name: name, State: Works, What: "it answers"}
	if err := place.Check(ctx, name); err != nil {
		engine.State, engine.What, engine.Mend = Absent, err.Error(), startEngine(name)
		return []Check{engine}
	}
	image := Check{Name: name + " image", State: Works}
	choice, err := place.Choose(ctx, name, wanted)
	if err != nil {
		image.State, image.What, image.Mend = Absent, err.Error(), "ovs-offline build --runtime "+name
		return []Check{engine, image}
	}
	image.What = choice.Why
	return []Check{engine, image}
}

func startEngine(name string) string {
	if _, err := exec.LookPath(name); err != nil {
		return installer() + " " + map[string]string{choose.Podman: "podman", choose.Docker: "docker.io"}[name]
	}
	if name == choose.Docker {
		return "sudo systemctl start docker, as a member of the group docker"
	}
	if os.Geteuid() == 0 {
		return "systemctl start podman.socket"
	}
	return "systemctl --user start podman.socket"
}

// checkKubeconfig reads the settings that collect-k8s would use. It asks no server.
func checkKubeconfig() Check {
	c := Check{Name: "kubeconfig", State: Works}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	switch {
	case err != nil:
		c.State, c.What, c.Mend = Broken, err.Error(), "export KUBECONFIG=FILE"
	case len(config.Contexts) == 0:
		c.State, c.What, c.Mend = Absent, "no cluster is configured; collect-k8s needs one", "export KUBECONFIG=FILE"
	case config.Contexts[config.CurrentContext] == nil:
		c.State, c.What, c.Mend = Broken, "it has no current context", "kubectl config use-context NAME, or collect-k8s --context NAME"
	default:
		c.What = "context " + config.CurrentContext
	}
	return c
}
