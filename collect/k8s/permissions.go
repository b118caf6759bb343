package k8s

import (
	"context"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// permissions queries the permissions in each namespace once.
type permissions struct {
	cluster *Cluster
	asked   sync.Map // maps a namespace to a func() verbs
}

// verbs are the permitted verbs on pods/exec.
type verbs struct{ create, get, known bool }

// exec returns an error if the user certainly has no permission to run commands in a
// namespace. Over WebSocket the request is a get, and since Kubernetes 1.35 create is
// needed as well; over SPDY it is a create. So create always suffices, and get alone on
// older servers only.
func (p *permissions) exec(ctx context.Context, namespace string) error {
	verbs := p.verbs(ctx, namespace)
	if !verbs.known || verbs.create || verbs.get {
		return ctx.Err()
	}
	return missingExec(namespace, "verbs create and get")
}

// explain adds the missing permission to the error of an attempt.
func (p *permissions) explain(ctx context.Context, namespace string, err error) error {
	if verbs := p.verbs(ctx, namespace); !verbs.known || verbs.create {
		return err
	}
	return fmt.Errorf("%w (%w)", missingExec(namespace, "verb create"), err)
}

func missingExec(namespace, verbs string) error {
	return fmt.Errorf("permission is missing: %s on resource pods/exec in namespace %s; docs/kubernetes.md has a role with all required permissions", verbs, namespace)
}

func (p *permissions) verbs(ctx context.Context, namespace string) verbs {
	once, _ := p.asked.LoadOrStore(namespace, sync.OnceValue(func() verbs { return ask(ctx, p.cluster, namespace) }))
	return once.(func() verbs)()
}

// ask queries the server. If the query fails, the verbs are unknown.
func ask(ctx context.Context, cluster *Cluster, namespace string) (v verbs) {
	for verb, allowed := range map[string]*bool{"create": &v.create, "get": &v.get} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "pods", Subresource: "exec"},
		}}
		answer, err := cluster.API.Review(ctx, review)
		if err != nil {
			return verbs{}
		}
		*allowed = answer.Status.Allowed
	}
	v.known = true
	return v
}
