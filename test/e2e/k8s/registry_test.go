package k8s

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Credentials of the registry.
const registryUser, registryPassword = "jane", "the right password"

// lockedRegistry starts a registry that wants credentials (basic authentication), and
// returns its address (host:port).
func lockedRegistry(t *testing.T) string {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != registryUser || password != registryPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// dockerConfig returns the file in which docker keeps the credentials of a registry.
func dockerConfig(t *testing.T, address, password string) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"auths": map[string]any{address: map[string]string{"username": registryUser,
		"password": password}}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pullSecret makes a secret in the namespace, as "kubectl create secret docker-registry" does.
func (c client) pullSecret(t *testing.T, name, address, password string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig(t, address, password)},
	}
	if _, err := c.Client.CoreV1().Secrets(c.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// labelled gives an image in the registry a label. A kubelet that has pulled an image with
// credentials asks for them wherever the same image is used, under any name: other tests use
// the one without the label.
func labelled(t *testing.T, image string) {
	t.Helper()
	reference, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	login := remote.WithAuth(&authn.Basic{Username: registryUser, Password: registryPassword})
	pushed, err := remote.Image(reference, login)
	if err != nil {
		t.Fatal(err)
	}
	config, err := pushed.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"test": t.Name()}
	changed, err := mutate.ConfigFile(pushed, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, changed, login); err != nil {
		t.Fatal(err)
	}
}

// TestRegistryThatWantsCredentials starts replicas from an image in a registry that wants
// credentials: without a secret, with those of another, and with the right ones.
func TestRegistryThatWantsCredentials(t *testing.T) {
	t.Parallel()
	c := newClient(t, copyOfNode(t))
	address := lockedRegistry(t)
	config := t.TempDir()
	if err := os.WriteFile(filepath.Join(config, "config.json"), dockerConfig(t, address, registryPassword),
		0o600); err != nil {
		t.Fatal(err)
	}
	push := program(t, "image", "push", address+"/debug/replicas:test")
	push.Env = append(os.Environ(), "DOCKER_CONFIG="+config, "REGISTRY_AUTH_FILE="+filepath.Join(config, "config.json"))
	if r := finish(t, push); r.code != 0 {
		t.Fatalf("image push: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	c.image = address + "/debug/replicas:test"
	labelled(t, c.image)
	c.pullSecret(t, "wrong", address, "another password")
	c.pullSecret(t, "right", address, registryPassword)
	before := collection(t, c.workdir)
	refused := map[string][]string{"no secret": nil, "wrong password": {"--image-pull-secret", "wrong"},
		"missing secret": {"--image-pull-secret", "missing"}}
	t.Run("refused", func(t *testing.T) {
		for how, flags := range refused {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				its := c
				its.workdir = copyOfNode(t)
				r := its.start(t, flags...)
				t.Log(r.complaints)
				lines := strings.Split(strings.TrimSpace(r.complaints), "\n")
				last := lines[len(lines)-1]
				for _, said := range []string{"can't pull the image " + c.image, "401 Unauthorized", "--image-pull-secret",
					"kubectl create secret docker-registry"} {
					if !strings.Contains(last, said) {
						t.Errorf("the last line does not hold %q: %s", said, last)
					}
				}
				if r.code != 1 {
					t.Errorf("exit %d, want 1", r.code)
				}
			})
		}
	})
	c.awaitNothing(t)
	c.mustStart(t, "--image-pull-secret", "right")
	if r := c.on(t, "exec", "ovs-vsctl", "list-br"); r.code != 0 || !strings.Contains(r.out, "br-int") {
		t.Errorf("exec: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	expectUntouched(t, c.workdir, before)
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}
