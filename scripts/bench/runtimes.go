package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runtimes compares the runtimes by the time from start to the first answered
// trace. The container engines are private ones, started before the measurement.
func (s sizes) runtimes() bench {
	wd := func(name string) string { return s.path("on-" + name) }
	names := append([]string{"process"}, installedEngines()...)
	dir := ""
	c := bench{
		name: "start to first trace, by runtime",
		prepare: func(ctx context.Context) error {
			var err error
			if dir, err = s.startEngines(ctx, names[1:]); err != nil {
				return err
			}
			for _, name := range names {
				if err := s.collectCapture(ctx, wd(name), "collect-sos"); err != nil {
					return err
				}
			}
			return nil
		},
		finish: func(ctx context.Context) error {
			if dir == "" {
				return nil
			}
			return errors.Join(do(ctx, "scripts/engines", "stop", dir), os.RemoveAll(dir))
		},
	}
	for _, name := range names {
		start := s.ours(wd(name), "--runtime", name, "start")
		trace := argv(filepath.Join(wd(name), "bin/ovs-appctl"), "ofproto/trace", "br-int", "in_port=3,ip")
		c.ways = append(c.ways, way{name: name, steps: func() []step { return []step{{start}, {trace}} }, after: s.stop(wd(name))})
	}
	return c
}

// installedEngines returns the engines that can be started here: both need root.
func installedEngines() []string {
	var found []string
	for name, program := range map[string]string{"podman": "podman", "docker": "dockerd"} {
		if _, err := exec.LookPath(program); err == nil && os.Geteuid() == 0 {
			found = append(found, name)
		}
	}
	return found
}

// startEngines starts engines, each with an image of this host's tools, and sets
// their addresses in the environment of this process.
func (s sizes) startEngines(ctx context.Context, names []string) (dir string, err error) {
	if len(names) == 0 {
		return "", nil
	}
	if dir, err = os.MkdirTemp("", "oo-bench-"); err != nil {
		return "", err
	}
	variables := map[string]string{"podman": "CONTAINER_HOST", "docker": "DOCKER_HOST"}
	for _, name := range names {
		start := exec.CommandContext(ctx, "scripts/engines", "start", dir, name)
		start.Stderr = os.Stderr
		out, err := start.Output()
		if err != nil {
			return dir, fmt.Errorf("starting %s: %w", name, err)
		}
		_, socket, _ := strings.Cut(strings.TrimSpace(string(out)), "=")
		if err := os.Setenv(variables[name], socket); err != nil {
			return dir, err
		}
		if err := do(ctx, s.program, "--runtime", name, "build", "--from-host"); err != nil {
			return dir, err
		}
	}
	return dir, nil
}
