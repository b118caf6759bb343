package sets

import (
	"fmt"
	"slices"
	"strings"
)

// plan is the list of the packets of a set: what is sent before and after the capture.
type plan struct {
	earlier, packets []*step
	talks            []*step  // sent after the others, in conversations that begin after the capture
	volleys          int      // that were planned
	hosts            []host   // that answer when a network namespace asks for their MAC
	shared           []string // MACs that a host and a router of its node have in common
}

// step is a packet that is to be sent, and where it is meant to come out.
type step struct {
	Packet
	frame   frame
	to      []string // the labels of edges or hosts that must get something
	follows []*step  // packets after the capture without which this would go another way
	marks   marks    // of the frame that was sent
	answers *step    // the request whose sender must recognise this as the answer
	moved   []string // what bridges no longer knew as they did at the capture
	unsent  error    // why the packet was not sent
	macs    []string // what flows of each node must hold before the packet is sent
	port    int      // of the list of the set's ports, at which the packet is put in
	volley  int      // the volley that the packet is part of, 0 for none
}

// volley sends the packets that a function adds without a pause between them: none of them
// depends on what becomes of another.
func (p *plan) volley(add func()) {
	first := len(p.packets)
	add()
	p.volleys++
	for _, s := range p.packets[first:] {
		s.volley = p.volleys
	}
}

// knowing makes the packet wait until each node has a flow with the MAC: a router's
// neighbour is known once ovn-controller has written it to the database, and all others
// have read it.
func (s *step) knowing(macs ...string) *step {
	s.macs = append(s.macs, macs...)
	return s
}

// announce adds ARP requests of hosts for their own addresses, from which switches learn.
func (p *plan) announce(hosts ...host) {
	for _, h := range hosts {
		p.tell(h.label+" announces "+h.ip, h.arp(h.ip))
	}
}

// tell adds a packet that is sent before the capture, from which switches and routers learn.
func (p *plan) tell(shows string, f frame, to ...string) *step {
	s := &step{Packet: Packet{Shows: shows}, frame: f, to: to}
	p.earlier = append(p.earlier, s)
	return s
}

func (p *plan) add(class, shows string, f frame, to ...string) *step {
	s := &step{Packet: Packet{Shows: shows, Class: class}, frame: f, to: to}
	p.packets = append(p.packets, s)
	return s
}

// delivered adds a packet that comes out at the port with that label.
func (p *plan) delivered(to, shows string, f frame) *step { return p.add(Delivered, shows, f, to) }

// dropped adds a packet of which nothing comes out.
func (p *plan) dropped(reason, shows string, f frame) *step {
	s := p.add(Dropped, shows, f)
	s.Reason = reason
	return s
}

// answered adds a packet that OVN or a flow answers.
func (p *plan) answered(to, why, shows string, f frame) *step {
	s := p.add(Generated, shows, f, to)
	s.Reason = why
	return s
}

// by names the rule that was planted.
func (s *step) by(kind, name string) *step {
	s.Rule = &Rule{kind, name}
	return s
}

func (s *step) established() *step {
	s.Established = true
	return s
}

// chosen marks a packet whose way a hash chooses. It can go to any of the labels.
func (s *step) chosen() *step {
	s.Choice = true
	return s
}

// afterwards makes a packet depend on one that was added before.
func (s *step) afterwards(first *step) *step {
	s.follows = append(s.follows, first)
	return s
}

// connection is opened before the capture: a request, the answer of whichever end point
// gets it, and for TCP the acknowledgement.
type connection struct {
	request, answer, acknowledgement *step
}

// connect opens a connection.
func (p *plan) connect(shows string, request frame, to ...string) *connection {
	c := &connection{}
	c.request = p.tell(shows+": the request", request, to...)
	c.answer = p.tell(shows+": the answer", frame{later: func() (frame, error) {
		seen, label, err := c.request.seen()
		if err != nil {
			return frame{}, err
		}
		back := seen.reversed(label)
		if back.proto == "tcp" {
			back.flags, back.seq, back.ack = "SA", 5000, seen.seq+1
		}
		return back, nil
	}}, request.from)
	c.answer.answers = c.request
	if request.proto == "tcp" {
		c.acknowledgement = p.tell(shows+": the acknowledgement", frame{later: func() (frame, error) {
			f, err := c.next("A")
			return f, err
		}}, to...)
	}
	return c
}

// both adds further packets of a connection in both directions, and of TCP the end of the
// client's side.
func (p *plan) both(shows string, c *connection, client, server string) *connection {
	p.delivered(server, shows+": a further packet of the client", c.forth()).established()
	p.delivered(client, shows+": an answer", c.back()).established().answers = c.request
	p.delivered(server, shows+": the client's last packet", c.flagged("FA")).established()
	return c
}

// output returns what came out where the step expects it. If a copy was flooded there too,
// that came first.
func (s *step) output() (Output, error) {
	for _, o := range slices.Backward(s.Outputs) {
		if o.Own && (slices.Contains(s.to, o.Label) || (len(s.to) == 0 && o.Role == roleEdge)) {
			return o, nil
		}
	}
	return Output{}, fmt.Errorf("packet %d (%s) did not come out at %s", s.ID, s.Shows, strings.Join(s.to, ", "))
}

// recognised reports whether the sender of the request can tell that this answers it: it
// comes from the address and the port to which the request went.
func (s *step) recognised() bool {
	if s.answers == nil {
		return true
	}
	have, _, err := s.seen()
	sent := s.answers.frame
	return err == nil && have.sip == sent.dip && have.sport == sent.dport && have.dip == sent.sip
}

// seen returns the frame that came out, and the label of the port.
func (s *step) seen() (frame, string, error) {
	o, err := s.output()
	if err != nil {
		return frame{}, "", err
	}
	raw, err := decode(o.Bytes)
	if err != nil {
		return frame{}, "", err
	}
	f, err := parse(raw)
	return f, o.Label, err
}

// next returns the next packet of the client.
func (c *connection) next(flags string) (frame, error) {
	f := c.request.frame
	sent, err := decode(c.request.Bytes)
	if err != nil {
		return frame{}, err
	}
	was, err := parse(sent)
	if err != nil {
		return frame{}, err
	}
	f.sport, f.icmpID, f.flags, f.seq, f.ack = was.sport, was.icmpID, flags, 1001, 5001
	return f, nil
}

// forth returns a further packet from the client.
func (c *connection) forth() frame {
	return frame{later: func() (frame, error) { return c.next("AP") }}
}

// flagged returns a further packet from the client with these TCP flags.
func (c *connection) flagged(flags string) frame {
	return frame{later: func() (frame, error) { return c.next(flags) }}
}

// back returns a further packet from the server.
func (c *connection) back() frame { return c.answered("AP") }

// answered returns a further packet from the server with these TCP flags.
func (c *connection) answered(flags string) frame {
	return frame{later: func() (frame, error) {
		seen, label, err := c.request.seen()
		if err != nil {
			return frame{}, err
		}
		f := seen.reversed(label)
		if f.proto == "tcp" {
			f.flags, f.seq, f.ack = flags, 5001, 1001
		}
		return f, nil
	}}
}

// failure returns an ICMP error from the server's side about the request. from is the
// address of the router that sends it, "" for the server itself.
func (c *connection) failure(kind, code uint8, from string) frame {
	return frame{later: func() (frame, error) {
		seen, label, err := c.request.seen()
		if err != nil {
			return frame{}, err
		}
		f := seen.reversed(label)
		if from != "" {
			f.sip = from
		}
		raw, err := c.request.innerPacket(seen)
		f.proto, f.icmp, f.inner = "icmp", [2]uint8{kind, code}, raw
		return f, err
	}}
}

// innerPacket returns the IP packet that came out, which an ICMP error holds. The error of
// a host of today holds all of a short packet. (With less than a TCP header, the conntrack
// of Open vSwitch 3.1.0 writes its checksum beyond the end of the packet.)
func (s *step) innerPacket(seen frame) ([]byte, error) {
	o, err := s.output()
	if err != nil {
		return nil, err
	}
	raw, err := decode(o.Bytes)
	if err != nil {
		return nil, err
	}
	skip := 14
	if seen.vlan != 0 {
		skip += 4
	}
	return raw[skip:], nil
}
