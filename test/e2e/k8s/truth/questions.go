package truth

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Question asks whether a sender reaches what a user calls To. Written as JSON, it is a check
// of `trace --file`.
type Question struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Protocol string `json:"protocol"`
	Network  string `json:"network,omitempty"`
	Family   int    `json:"family,omitempty"`

	Sender  cluster.Network `json:"-"` // the network namespace of the sender
	Address netip.AddrPort  `json:"-"` // what the sender's program takes To for
	Only    string          `json:"-"` // the one whose answer counts, "" for any
	Tries   int             `json:"-"` // how often to ask, since the answer may depend on the endpoint; 0 for once
	Sticks  bool            `json:"-"` // to a service with session affinity: it loses packets until it knows the client, and then has one endpoint
}

// Truth is what happened to the packets of a question.
type Truth struct {
	Question
	Expect string `json:"expect"` // the right verdict: reachable, unreachable or, if the endpoints differ, ambiguous
}

// Find asks all questions with real packets, several at once.
func Find(ctx context.Context, questions []Question) ([]Truth, error) {
	truths, errs := make([]Truth, len(questions)), make([]error, len(questions))
	var all sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i, q := range questions {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			truths[i].Question = q
			truths[i].Expect, errs[i] = q.find(ctx)
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s to %s (%s): %w", questions[i].From, questions[i].To, questions[i].Protocol, err)
		}
	}
	return truths, nil
}

// find returns the right verdict. Packets may be lost while routers ask for MAC addresses, so who is not
// answered at once asks again.
func (q Question) find(ctx context.Context) (string, error) {
	reached, tries := 0, max(1, q.Tries)
	for range max(2, tries) {
		answer, err := Ask(ctx, q.Sender, q.Protocol, q.Address)
		if err != nil {
			return "", err
		}
		if answer != "" && (q.Only == "" || q.Only == answer || q.Protocol == "icmp") {
			reached++
		}
		if reached > 0 && (q.Sticks || tries == 1) {
			return "reachable", nil
		}
	}
	switch reached {
	case 0:
		return "unreachable", nil
	case tries:
		return "reachable", nil
	}
	return "ambiguous", nil
}

// Peer is one who asks, and who answers at ServerPort.
type Peer struct {
	Name    string // by which its users and ovs-offline know it
	Network cluster.Network
}

// Between returns the question whether one peer reaches another at an address.
func Between(from, to Peer, protocol string, ip netip.Addr) Question {
	q := Question{From: from.Name, To: to.Name, Protocol: protocol, Sender: from.Network, Only: to.Name, Address: netip.AddrPortFrom(ip, ServerPort)}
	if protocol != "icmp" {
		q.To += fmt.Sprintf(":%d", ServerPort)
	}
	return q
}

// Outside returns the question whether a peer reaches an address outside of the cluster, where
// one answers with the name.
func Outside(from Peer, ip netip.Addr, name string) Question {
	to := fmt.Sprintf("external/%s:%d", ip, ServerPort)
	return Question{From: from.Name, To: to, Protocol: "tcp", Sender: from.Network, Only: name, Address: netip.AddrPortFrom(ip, ServerPort)}
}

// Service returns the question whether a peer reaches a service, NAMESPACE/NAME, at its port.
func Service(from Peer, service, protocol string, at netip.AddrPort) Question {
	to := fmt.Sprintf("svc/%s:%d", service, at.Port())
	return Question{From: from.Name, To: to, Protocol: protocol, Sender: from.Network, Address: at}
}
