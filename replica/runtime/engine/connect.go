// Package engine connects to podman and docker, and manages containers and images with
// them. It uses docker's API for both engines, because podman's service offers that API
// as well.
package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"ovs-offline/replica/runtime/daemon"
)

// The engines, as the command line spells them.
const (
	Podman = "podman"
	Docker = "docker"
)

// Names lists the engines in the order in which they are preferred.
func Names() []string { return []string{Podman, Docker} }

// pingTimeout is how long an engine may take to answer a first request.
const pingTimeout = 3 * time.Second

// Engine is a connection to the service of podman or docker on this machine.
type Engine struct {
	client   *client.Client
	name     string
	rootless bool // the service runs without root's privileges
}

// Connect connects to an engine by its name: to the socket that the engine's own
// command-line client would use. The error names each socket and why it failed.
func Connect(ctx context.Context, name string) (*Engine, error) {
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
		e, err := connect(ctx, name, address)
		if err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, fmt.Errorf("%s: %w", address, err))
	}
	return nil, fmt.Errorf("%s does not answer: %w; %s", name, errors.Join(failed...), hint)
}

// ConnectAny connects to the first engine that answers.
func ConnectAny(ctx context.Context) (*Engine, error) {
	var failed []error
	for _, name := range Names() {
		e, err := Connect(ctx, name)
		if err == nil {
			return e, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("no container engine answers: %w", errors.Join(failed...))
}

func connect(ctx context.Context, name, address string) (*Engine, error) {
	path, local := strings.CutPrefix(address, "unix://")
	if !local {
		return nil, errors.New("only an engine on this machine can reach the working directory: a unix:// address is needed")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("there is no such socket")
	}
	c, err := client.New(client.WithHost(address))
	if err != nil {
		return nil, err
	}
	pinging, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err = c.Ping(pinging, client.PingOptions{NegotiateAPIVersion: true})
	if pinging.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("it does not answer within %v", pingTimeout)
	}
	_, owner, _ := daemon.Listener(path) // podman itself would take a second to report its user
	if err == nil && owner < 0 {
		err = errors.New("it is unknown which user runs it")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Engine{client: c, name: name, rootless: owner != 0}, nil
}

// Name returns the engine's name, as the command line spells it.
func (e *Engine) Name() string { return e.name }

// Address returns the address at which the engine listens.
func (e *Engine) Address() string { return e.client.DaemonHost() }

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
// DOCKER_HOST, that of the chosen context, or the system's socket.
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

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
