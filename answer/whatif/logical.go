package whatif

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// LogicalEnds returns what ovn-trace prints of the packet of an answer, with the NB database as the collected one was after a
// transaction: the logical ports where the packet leaves, among others. ovn-trace knows neither the nodes nor their
// connections, so that the text shows where to look for a change, and not what becomes of the packet. It is "" for a packet that does
// not begin at a logical port. Other methods go on with the flows that were read before this call.
func (s *Session) LogicalEnds(ctx context.Context, traced *answer.Answer, transaction int64) (string, error) {
	expression := logicalPacket(traced)
	if expression == "" {
		return "", nil
	}
	s.progress(fmt.Sprintf("asking ovn-trace about transaction %d", transaction))
	if err := s.at(ctx, transaction, s.put); ctx.Err() != nil {
		return "", ctx.Err()
	} else if err != nil { // as of a state before ovn-northd has begun
		return err.Error(), nil
	}
	argv := []string{"ovn-trace", "--db=unix:" + s.scratch.SBSocket(), "--no-leader-only", "--minimal", "--no-friendly-names"}
	const lookups = 4 // in conntrack, on a way through a router
	for range lookups {
		argv = append(argv, "--ct=new")
	}
	out, err := s.options.Runtime.Tool(ctx, s.options.Dir.VarRun(workdir.SB), nil, append(argv, expression)...)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil { // an old release without such an option, or a port that is not there
		return err.Error(), nil
	}
	return string(out), nil
}

// at calls use with a copy of the collected NB database as it was after a transaction, by its number in the log.
func (s *Session) at(ctx context.Context, transaction int64, use func(ctx context.Context, nb string) error) error {
	then := filepath.Join(s.options.Dir.Path(), "nb-at.db")
	defer os.Remove(then)
	if _, _, err := file.StandaloneAt(ctx, s.options.NB, then, transaction); err != nil {
		return err
	}
	return use(ctx, then)
}

// logicalPacket returns the first packet of an answer as an expression of OVN (ovn-sb(5)), "" if it does not begin at a logical
// port.
func logicalPacket(traced *answer.Answer) string {
	if traced == nil || len(traced.Path) == 0 || traced.Path[0].LogicalPort == "" {
		return ""
	}
	terms := []string{fmt.Sprintf("inport == %q", traced.Path[0].LogicalPort)}
	for _, word := range strings.Split(traced.Path[0].Packet, ",") {
		field, value, isField := strings.Cut(word, "=")
		if of := logicalField(field); isField && of != "" {
			terms = append(terms, of+" == "+value)
		}
	}
	return strings.Join(terms, " && ")
}

// logicalField returns OVN's name of a field of a packet, "" for one that hardly a logical flow matches.
func logicalField(field string) string {
	layer, part, _ := strings.Cut(field, "_")
	switch layer {
	case "dl":
		return "eth." + part
	case "nw":
		if part == "ttl" {
			return "ip.ttl"
		}
		if part == "src" || part == "dst" {
			return "ip4." + part
		}
	case "ipv6":
		if part == "src" || part == "dst" {
			return "ip6." + part
		}
	case "icmp":
		return "icmp4." + part
	case "icmpv6":
		return "icmp6." + part
	case "tcp", "udp", "sctp":
		if part == "src" || part == "dst" {
			return layer + "." + part
		}
	}
	return ""
}
