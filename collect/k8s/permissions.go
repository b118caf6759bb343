package k8s

import (
	"context"
	"errors"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrForbidden is wrapped when the cluster's permissions don't suffice.
var ErrForbidden = errors.New("permission is missing")

// checkExec finds out beforehand whether commands may be run in a namespace.
// Over WebSocket the request is a get, and since Kubernetes 1.35 create is
// needed as well; over SPDY it is a create. So create does, one way or the
// other; get alone does on servers that are older, which the attempt will tell.
func checkExec(ctx context.Context, c *Cluster, namespace string) error {
	var missing []string
	for _, verb := range []string{"create", "get"} {
		allowed, known := may(ctx, c, namespace, verb)
		if allowed || !known {
			return ctx.Err()
		}
		missing = append(missing, verb)
	}
	return missingExec(namespace, missing...)
}

func missingExec(namespace string, verbs ...string) error {
	text := ""
	for i, verb := range verbs {
		if i > 0 {
			text += " and "
		}
		text += verb
	}
	return fmt.Errorf("%w: verb %s on resource pods/exec in namespace %s; docs/kubernetes.md has a role with all that is needed", ErrForbidden, text, namespace)
}

// may asks the server; known is false where it doesn't say.
func may(ctx context.Context, c *Cluster, namespace, verb string) (allowed, known bool) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "pods", Subresource: "exec"},
	}}
	answer, err := c.API.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, false
	}
	return answer.Status.Allowed, true
}

// permissions asks once for each namespace.
type permissions struct {
	cluster *Cluster
	mu      sync.Mutex
	asked   map[string]func() error
}

func (p *permissions) exec(ctx context.Context, namespace string) error {
	p.mu.Lock()
	once := p.asked[namespace]
	if once == nil {
		once = sync.OnceValue(func() error { return checkExec(ctx, p.cluster, namespace) })
		p.asked[namespace] = once
	}
	p.mu.Unlock()
	return once()
}
