package k8s

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// documentedRole returns the role with a name in docs/kubernetes.md.
func documentedRole(t *testing.T, name string) (role rbacv1.Role) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "      name: "+name+"\n")
	if !found {
		t.Fatalf("docs/kubernetes.md has no role %s", name)
	}
	_, after, _ = strings.Cut(after, "    rules:\n")
	rules, _, _ := strings.Cut(after, "\n\n") // the end of the block
	if err := yaml.Unmarshal([]byte("rules:\n"+rules), &role); err != nil || len(role.Rules) == 0 {
		t.Fatalf("%d rules, %v:\n%s", len(role.Rules), err, rules)
	}
	return role
}

// TestDocumentedRoleSuffices uses replicas in pods as a user with the permissions that the
// documents ask for, and no other.
func TestDocumentedRoleSuffices(t *testing.T) {
	t.Parallel()
	c := newClient(t, copyOfNode(t))
	c.user = "enough"
	c.allow(t, documentedRole(t, "ovs-offline-replicas").Rules...)
	c.mustStart(t)
	for _, args := range [][]string{{"exec", "ovs-vsctl", "list-br"}, {"status"},
		{"trace", "ns1/web-0", "ns1/client-0:80"}} {
		if r := c.on(t, args...); r.code != 0 && r.code != 3 || strings.Contains(r.complaints, "forbidden") {
			t.Errorf("%q: exit %d\n%s\n%s", args, r.code, r.out, r.complaints)
		}
	}
	if sets := c.list(t); len(sets) != 1 {
		t.Errorf("listed: %+v", sets)
	}
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}
