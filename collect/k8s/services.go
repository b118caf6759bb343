package k8s

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"ovs-offline/internal/archive"
	"ovs-offline/workdir/recording"
	"ovs-offline/workdir/services"
)

// annotationVIP has the addresses of a service that kube-ovn made of a SwitchLBRule.
const annotationVIP = "ovn.kubernetes.io/switch_lb_vip"

// askServices adds the services of the cluster to the node, where the network's databases do not
// name them. Without permission to list them, the node has a remark.
func (s *nodeSource) askServices(ctx context.Context) error {
	if !s.layout.services {
		return nil
	}
	text, err := s.survey.services(ctx)
	if err != nil {
		s.node.Remarks = append(s.node.Remarks, fmt.Sprintf("the services of the cluster have no names, only addresses: %v", err))
		return ctx.Err()
	}
	spooled, err := archive.Spool(ctx, s.spool, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w: %w", errLocal, err)
	}
	s.node.Services = recording.Services{File: spooled, Origin: "services of the cluster"}
	return nil
}

// listServices returns the function that asks for the services once for all nodes.
func listServices(cluster *Cluster) func(ctx context.Context) ([]byte, error) {
	var once sync.Once
	var text []byte
	var err error
	return func(ctx context.Context) ([]byte, error) {
		once.Do(func() {
			var list *corev1.ServiceList
			if list, err = cluster.API.Services(ctx); err == nil {
				text, err = services.Marshal(known(list))
			}
		})
		return text, err
	}
}

// known returns what names need of services.
func known(list *corev1.ServiceList) []services.Service {
	var found []services.Service
	for _, s := range list.Items {
		service := services.Service{Namespace: s.Namespace, Name: s.Name, Addresses: addresses(s)}
		for _, port := range s.Spec.Ports {
			service.Ports = append(service.Ports, services.Port{Protocol: strings.ToLower(string(port.Protocol)), Port: uint16(port.Port)})
		}
		found = append(found, service)
	}
	return found
}

// addresses returns all addresses of a service.
func addresses(s corev1.Service) []string {
	var found []string
	add := func(text string) {
		if text != "" && text != corev1.ClusterIPNone {
			found = append(found, text)
		}
	}
	for _, ip := range s.Spec.ClusterIPs {
		add(ip)
	}
	for _, ip := range s.Spec.ExternalIPs {
		add(ip)
	}
	for _, at := range s.Status.LoadBalancer.Ingress {
		add(at.IP)
	}
	for ip := range strings.SplitSeq(s.Annotations[annotationVIP], ",") {
		add(strings.TrimSpace(ip))
	}
	return found
}
