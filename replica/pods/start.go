package pods

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/internal/kube"
	"ovs-offline/internal/logging"
	"ovs-offline/internal/phrase"
	"ovs-offline/replica"
	"ovs-offline/replica/choose"
)

// start is the state of one start.
type start struct {
	clusters *Clusters
	cluster  *cluster
	options  Options
	place    replica.Place // without the node's own part
	nodes    []*starting
	groups   []*group
	begun    bool // the workdirs have been written to
	made     bool // an object may be in the cluster
}

// starting is a node with what was chosen for it.
type starting struct {
	Workdir
	image   string
	outcome Outcome
}

// Start starts replicas of nodes in pods, and replaces replicas that run.
// An error concerns all nodes, and then nothing is left in the cluster; otherwise the
// outcomes are in the order of the nodes. If ctx ends, nothing is left either.
func (c *Clusters) Start(ctx context.Context, nodes []Workdir, options Options) ([]Outcome, error) {
	start, err := c.newStart(ctx, nodes, options)
	if err != nil {
		return nil, err
	}
	if err = start.run(ctx); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, start.abandon(ctx))
	}
	outcomes := make([]Outcome, len(nodes))
	for i, node := range start.nodes {
		outcomes[i] = node.outcome
	}
	if slices.ContainsFunc(outcomes, func(outcome Outcome) bool { return outcome.Err == nil }) {
		return outcomes, nil
	}
	if one := outcomes[0].Err; !slices.ContainsFunc(outcomes, func(outcome Outcome) bool { return outcome.Err.Error() != one.Error() }) {
		return nil, errors.Join(one, start.abandon(ctx))
	}
	return outcomes, start.abandon(ctx)
}

// newStart chooses the images, and reads the configuration of the cluster.
func (c *Clusters) newStart(ctx context.Context, nodes []Workdir, options Options) (*start, error) {
	config, err := options.Kubeconfig.Load(ctx)
	if err != nil {
		return nil, err
	}
	start := &start{clusters: c, options: options, place: replica.Place{Server: config.Host, Version: c.version,
		Set: strings.ToLower(rand.Text()[:10]), Ends: time.Now().Add(options.Keep).UTC().Truncate(time.Second)}}
	if start.cluster, err = newCluster(config); err != nil {
		return nil, err
	}
	if start.place.Namespace, err = options.Kubeconfig.Namespace(); err != nil {
		return nil, err
	}
	if start.place.Context, err = options.Kubeconfig.Context(); err != nil {
		return nil, err
	}
	if err := start.choose(ctx, nodes); err != nil {
		return nil, err
	}
	start.groups = pack(start.nodes)
	return start, nil
}

// choose chooses the image for each node, and prints a line for each image.
func (s *start) choose(ctx context.Context, nodes []Workdir) error {
	images, err := newChooser(ctx, s.options)
	if err != nil {
		return err
	}
	var lines []string
	with := map[string][]string{} // names of nodes by line
	for _, node := range nodes {
		image, why, err := images.choose(ctx, node.Recorded)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("runtime: %s at %s, namespace %s, image %s%s", Name, s.place.Server, s.place.Namespace, image, why)
		if with[line] == nil {
			lines = append(lines, line)
		}
		with[line] = append(with[line], node.Name)
		s.nodes = append(s.nodes, &starting{Workdir: node, image: image})
	}
	for _, line := range lines {
		if len(lines) == 1 {
			s.options.Say("", line)
		} else {
			s.options.Say(phrase.FirstNames(with[line]), line)
		}
	}
	return nil
}

func (s *start) run(ctx context.Context) error {
	jobs, groups := s.jobs()
	for _, job := range jobs {
		if err := s.try(ctx, job); err != nil {
			return err
		}
	}
	if err := s.options.Before(ctx); err != nil {
		return err
	}
	s.begun = true
	if err := s.keep(); err != nil {
		s.options.Say("", "warning: later commands use KUBECONFIG, as the kubeconfig of this start can't be kept: "+err.Error())
	}
	for _, node := range s.nodes {
		place := s.place
		place.Folder = pathInPod(node.Name)
		if err := (replica.Elsewhere{Runtime: Name, Place: place}).Begin(node.Dir); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	if err := s.create(ctx, jobs, groups); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	return s.deleteUnused(ctx, jobs, groups)
}

// deleteUnused deletes the Jobs without a started replica, unless none has one: Start
// deletes these.
func (s *start) deleteUnused(ctx context.Context, jobs []*batchv1.Job, groups [][]*group) error {
	unused := func(list []*group) bool {
		return !slices.ContainsFunc(list, func(group *group) bool {
			return slices.ContainsFunc(group.nodes, func(node *starting) bool { return node.outcome.Err == nil })
		})
	}
	for i, job := range jobs {
		if unused(groups[i]) && !unused(s.groups) {
			if err := s.cluster.client.DeleteJob(ctx, job.Namespace, job.Name, job.UID); err != nil && !apierrors.IsNotFound(err) {
				return s.explain(err, "deleting the Job "+job.Name+", in which no replica was started")
			}
		}
	}
	return nil
}

// keep keeps which kubeconfig the start uses.
func (s *start) keep() error {
	files, err := s.options.Kubeconfig.Files()
	if err != nil {
		return err
	}
	return keep(s.place.Set, kept{files, s.place.Ends})
}

// create makes the objects in the cluster.
func (s *start) create(ctx context.Context, jobs []*batchv1.Job, groups [][]*group) error {
	for i, job := range jobs {
		made, err := s.cluster.client.CreateJob(ctx, job)
		var refused apierrors.APIStatus
		s.made = s.made || !errors.As(err, &refused)
		if err != nil {
			return s.explain(err, "creating a Job")
		}
		jobs[i] = made
		for index, group := range groups[i] {
			group.job, group.index = made, index
		}
	}
	if err := s.cluster.client.CreateNetworkPolicy(ctx, s.policy(jobs)); err != nil {
		return s.explain(err, "creating a NetworkPolicy")
	}
	return nil
}

// try returns the error with which the cluster refuses the pods of a Job, for example that
// of Pod Security or of a quota. A user who may create Jobs need not be allowed to create
// pods: then the events of the Job name the error later.
func (s *start) try(ctx context.Context, job *batchv1.Job) error {
	err := s.tryOnce(ctx, job)
	if demandsUser(err) {
		// OpenShift gives the pod a user of the namespace's own.
		job.Spec.Template.Spec.SecurityContext.RunAsUser, job.Spec.Template.Spec.SecurityContext.RunAsGroup = nil, nil
		err = s.tryOnce(ctx, job)
	}
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource") {
		logging.FromContext(ctx).Debug("the user may not create pods", "error", err)
		return nil
	}
	switch {
	case err == nil:
		return nil
	case kube.Unavailable(err):
		return kube.Explain(err, "asking the API server "+s.place.Server)
	}
	return s.explain(err, "the cluster refuses a pod with replicas")
}

func (s *start) tryOnce(ctx context.Context, job *batchv1.Job) error {
	template := job.Spec.Template
	return s.cluster.client.TryPod(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, GenerateName: job.Name + "-", Labels: template.Labels}, Spec: template.Spec,
	})
}

// demandsUser reports whether OpenShift refuses a pod, which it does for a user of the pod's
// own choice.
func demandsUser(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "security context constraint")
}

// explain adds the next step to an error of the server.
func (s *start) explain(err error, doing string) error {
	err = kube.Explain(err, doing)
	switch {
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces "):
		return fmt.Errorf("%w: make it (kubectl create namespace %s), or name another with --namespace", err, s.place.Namespace)
	}
	return explainRefusal(err)
}

// explainRefusal adds the next step to the error of a user who lacks a permission.
func explainRefusal(err error) error {
	if kube.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") {
		return fmt.Errorf("%w; docs/kubernetes.md has a role with all required permissions", err)
	}
	return err
}

// abandon removes what a start has made that failed or was interrupted.
func (s *start) abandon(ctx context.Context) error {
	const limit = 10 * time.Second // the user may have pressed Ctrl-C
	if !s.begun {
		return nil
	}
	slow := fmt.Errorf("deleting set %s in namespace %s takes longer than %s", s.place.Set, s.place.Namespace, limit)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, slow)
	defer cancel()
	if s.made {
		if err := s.cluster.delete(ctx, s.place.Namespace, s.place.Set); err != nil {
			// replica.json stays, so that the next start or stop tries again
			if errors.Is(err, ErrRemains) {
				return err
			}
			return fmt.Errorf("%w; what is left ends after %s by itself, or with \"ovs-offline stop\"", err, s.options.Keep)
		}
	}
	forget(s.place.Set)
	var errs []error
	for _, node := range s.nodes {
		errs = append(errs, replica.Stop(ctx, node.Dir))
	}
	return errors.Join(errs...)
}

// elsewhere returns this host's record of the replica of a node in a pod.
func elsewhere(node Workdir, place replica.Place) (replica.Elsewhere, error) {
	exec, err := choose.ExecPrefix(node.Dir)
	return replica.Elsewhere{Runtime: Name, Place: place, Exec: exec}, err
}
