package sets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/command"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// Datapath is the kind of datapath that the workdirs of a set show.
type Datapath int

// The kinds. Native is how the nodes were: the switch built the headers of tunnels itself, as
// with DPDK, and in a set that ran on the kernel's datapath the kernel did. With Kernel, the
// nodes with native tunnels look as if the kernel did it. The packets are delivered all the
// same.
const (
	Native Datapath = iota
	Kernel
)

// Workdirs collects each node into dir/NODE, and returns the paths by node. With Kernel,
// the recorded features of the datapath are those of the kernel's. Within a run of
// scripts/testrun a recorded set is collected once, and dir gets a copy.
func (s *Set) Workdirs(ctx context.Context, dir string, as Datapath) (map[string]string, error) {
	if run := os.Getenv(ovs.RunVariable); run != "" && s.IsShared() {
		from := filepath.Join(run, "collected", fmt.Sprint(int(as)), s.Name)
		if err := Once(from, func() error { return s.collect(ctx, from, as) }); err != nil {
			return nil, err
		}
		if err := copyAll(ctx, from, dir); err != nil {
			return nil, err
		}
	} else if err := s.collect(ctx, dir, as); err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, node := range s.Nodes {
		paths[node] = filepath.Join(dir, node)
	}
	return paths, nil
}

// copyAll copies what a folder holds into another one, as it is.
func copyAll(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	_, err := command.Run(ctx, command.Command{Argv: []string{"cp", "-a", from + "/.", to}})
	return err
}

// collect collects each node into dir/NODE.
func (s *Set) collect(ctx context.Context, dir string, as Datapath) error {
	for _, node := range s.Nodes {
		report, err := s.Report(node)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, node)
		err = workdirOf(ctx, report, path, as)
		if err == nil {
			err = copyNamespaces(filepath.Dir(report), path)
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	return nil
}

// ownNamespace is the name of the node's own network namespace in Port.Namespace, and of its folder.
const ownNamespace = "own"

// copyNamespaces copies what was recorded of each network namespace of a node, a folder each, into the
// workdir in dir.
func copyNamespaces(from, dir string) error {
	files, err := filepath.Glob(filepath.Join(from, "namespaces", "*", "*"))
	if err != nil {
		return err
	}
	own, err := filepath.Glob(filepath.Join(from, ownNamespace, "*"))
	if err != nil || len(files)+len(own) == 0 {
		return err
	}
	wd, err := workdir.Lock(dir)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	for _, file := range append(files, own...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		to := recordedPath(wd.Data, filepath.Base(filepath.Dir(file)), filepath.Base(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// recordedPath returns the path of an output of a namespace. Those of the node's own are beside what the node
// recorded otherwise.
func recordedPath(wd workdir.Data, namespace, name string) string {
	switch {
	case namespace != ownNamespace:
		return wd.NamespaceRecorded(namespace, name)
	case name == workdir.RecordedLinks || name == workdir.RecordedKernelRoutes:
		return wd.Recorded(name)
	}
	return wd.HostRecorded(name)
}

func workdirOf(ctx context.Context, report, dir string, as Datapath) error {
	wd, err := workdir.Lock(dir)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	if _, _, err := collect.Collect(ctx, wd, collect.SosReport{Path: report}, collect.Options{}); err != nil || as == Native {
		return err
	}
	bridges, err := os.ReadDir(wd.Recorded("bridges"))
	if err != nil {
		return err
	}
	for _, bridge := range bridges {
		file := wd.Recorded(filepath.Join("bridges", bridge.Name(), workdir.RecordedFeatures))
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		changed := strings.Replace(string(text), "Tunnel push pop: Yes", "Tunnel push pop: No", 1)
		if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
			return err
		}
	}
	return nil
}
