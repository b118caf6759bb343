// Package services has the services of a Kubernetes cluster by their addresses: kube-ovn writes
// the addresses of all services of a VPC into a few load balancers, and no names.
package services

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Service is a service with all its addresses.
type Service struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	Ports     []Port   `json:"ports"`
}

// Port is a port of a service.
type Port struct {
	Protocol string `json:"protocol"` // tcp, udp or sctp
	Port     uint16 `json:"port"`
}

// Names are the names of services, NAMESPACE/NAME, by address and port. The zero value has none.
type Names map[key]string

type key struct {
	protocol string
	at       netip.AddrPort
}

// Of returns the name of the service with a VIP of a load balancer, ADDRESS:PORT or
// [ADDRESS]:PORT, "" for none.
func (n Names) Of(protocol, vip string) string {
	at, err := netip.ParseAddrPort(vip)
	if err != nil {
		return ""
	}
	if protocol == "" {
		protocol = "tcp" // ovn-nb(5)
	}
	return n[key{protocol, at}]
}

// All yields the VIPs of all services in order, and the protocol and the name of each.
func (n Names) All(yield func(vip netip.AddrPort, of Named) bool) {
	inOrder := func(a, b key) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.protocol, b.protocol)) }
	for _, at := range slices.SortedFunc(maps.Keys(n), inOrder) {
		if !yield(at.at, Named{at.protocol, n[at]}) {
			return
		}
	}
}

// Named is the protocol of a VIP and the name of its service.
type Named struct{ Protocol, Name string }

// Marshal returns the text of a file with services.
func Marshal(list []Service) ([]byte, error) { return json.MarshalIndent(list, "", " ") }

// maxSize limits the file, which may be another person's.
const maxSize = 64 << 20

// Read reads the names in a file with services. Without such a file, there are none.
func Read(path string) (Names, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSize {
		return nil, fmt.Errorf("%s: no file of up to %d bytes", path, maxSize)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Service
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return namesOf(list), nil
}

func namesOf(list []Service) Names {
	names := Names{}
	for _, service := range list {
		for _, text := range service.Addresses {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				continue // "None"
			}
			for _, port := range service.Ports {
				names[key{strings.ToLower(port.Protocol), netip.AddrPortFrom(ip, port.Port)}] = service.Namespace + "/" + service.Name
			}
		}
	}
	return names
}
