package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"ovs-offline/replica/runtime/daemon"
)

// pingTimeout is how long an engine may take to answer a first request.
const pingTimeout = 3 * time.Second

// Connect connects to an engine by its name: to the socket that the engine's own
// command-line client would use. The error names each socket and why it failed.
func Connect(ctx context.Context, name string) (Engine, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%s is used on Linux only: its sockets are in a virtual machine here", name)
	}
	find, hint := podmanAddresses, "start it with: podman system service --time=0 (or systemctl [--user] start podman.socket), or name its socket in CONTAINER_HOST"
	if name == Docker {
		find, hint = dockerAddresses, "start docker, or name its socket in DOCKER_HOST"
	}
	addresses, err := find()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var failed []error
	for _, address := range addresses {
		engine, err := connect(ctx, name, address)
		if err == nil {
			return engine, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, fmt.Errorf("%s: %w", address, err))
	}
	return nil, fmt.Errorf("%s does not answer: %w; %s", name, errors.Join(failed...), hint)
}

// ConnectAny connects to the first engine that answers.
func ConnectAny(ctx context.Context) (Engine, error) {
	var failed []error
	for _, name := range Names() {
		engine, err := Connect(ctx, name)
		if err == nil {
			return engine, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("no container engine answers: %w", errors.Join(failed...))
}

func connect(ctx context.Context, name, address string) (Engine, error) {
	path, local := strings.CutPrefix(address, "unix://")
	if !local {
		return nil, errors.New("only an engine on this machine can reach the working directory: a unix:// address is needed")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("there is no such socket")
	}
	pinging, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	listening, err := new(net.Dialer).DialContext(pinging, "unix", path)
	if err != nil {
		return nil, err // at once: podman's bindings would try three times
	}
	_ = listening.Close()
	_, owner, _ := daemon.Listener(path) // podman itself would take a second to report its user
	if owner < 0 {
		return nil, errors.New("it is unknown which user runs it")
	}
	rootless := owner != 0
	var engine Engine
	if name == Docker {
		engine, err = connectDocker(pinging, address, rootless)
	} else {
		engine, err = connectPodman(pinging, address, rootless)
	}
	if err != nil && pinging.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("it does not answer within %v", pingTimeout)
	}
	return engine, err
}

// podmanAddresses returns the addresses that podman's own client tries.
func podmanAddresses() ([]string, error) {
	if host := os.Getenv("CONTAINER_HOST"); host != "" {
		return []string{host}, nil
	}
	system := "unix:///run/podman/podman.sock"
	if os.Geteuid() == 0 {
		return []string{system}, nil
	}
	dir := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), filepath.Join("/run/user", strconv.Itoa(os.Geteuid())))
	return []string{"unix://" + filepath.Join(dir, "podman/podman.sock"), system}, nil
}

// dockerAddresses returns the address that docker's own client uses:
// DOCKER_HOST, the address of the chosen context, or the system's socket.
func dockerAddresses() ([]string, error) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return []string{host}, nil
	}
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return []string{client.DefaultDockerHost}, nil // without a home there is no configuration
		}
		dir = filepath.Join(home, ".docker")
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := readJSON(filepath.Join(dir, "config.json"), &config); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	name := cmp.Or(os.Getenv("DOCKER_CONTEXT"), config.CurrentContext)
	if name == "" || name == "default" {
		return []string{client.DefaultDockerHost}, nil
	}
	// The folder is named after the digest of the context's name (docker/cli,
	// cli/context/store).
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	path := filepath.Join(dir, "contexts", "meta", fmt.Sprintf("%x", sha256.Sum256([]byte(name))), "meta.json")
	if err := readJSON(path, &meta); err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	host := meta.Endpoints["docker"].Host
	if host == "" {
		return nil, fmt.Errorf("context %q has no docker endpoint (%s)", name, path)
	}
	return []string{host}, nil
}

func readJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
