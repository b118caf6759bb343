package shrink

import (
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/show"
)

// Autotest prints a test in the style of OVN's own (tests/ovn.at): the nodes with the ports of the packet's way, the
// database, and what ovn-trace says of the packet.
func (r *Result) Autotest(p *show.Page) {
	p.Printf("OVN_FOR_EACH_NORTHD([\nAT_SETUP([%s: %s])\novn_start\n\nnet_add n1\n", inM4(r.Question), r.Verdict)
	nodes := r.nodes()
	for i, node := range nodes {
		p.Printf("sim_add hv%d # %s\nas hv%d\novs-vsctl add-br br-phys\novn_attach n1 br-phys 192.168.0.%d\n", i+1, inM4(node), i+1, i+1)
		for _, of := range r.Bindings {
			if of.Node == node {
				p.Printf("check %s\n", inM4(line("ovs-vsctl", attach(of))))
			}
		}
		p.Printf("\n")
	}
	for _, words := range r.Commands {
		p.Printf("check %s\n", inM4(line("ovn-nbctl", words)))
	}
	p.Printf("wait_for_ports_up\ncheck ovn-nbctl --wait=hv sync\n\n")
	r.expectation(p)
	var hosts []string
	for i := range nodes {
		hosts = append(hosts, "hv"+string(rune('1'+i)))
	}
	p.Printf("OVN_CLEANUP([%s])\nAT_CLEANUP\n])\n", strings.Join(hosts, "],["))
}

// nodes returns the nodes that have a port of the packet's way.
func (r *Result) nodes() (nodes []string) {
	for _, of := range r.Bindings {
		if !slices.Contains(nodes, of.Node) {
			nodes = append(nodes, of.Node)
		}
	}
	return nodes
}

// expectation prints the check of the packet. Connections that are not known are new, as in the question.
func (r *Result) expectation(p *show.Page) {
	if r.Verdict == logged {
		p.Printf("AT_CHECK([grep -q %s northd/ovn-northd.log */ovn-controller.log])\n\n", inM4(show.Word(strings.TrimPrefix(r.Question, "log "))))
		return
	}
	if r.Verdict == drifted {
		r.computes(p)
		return
	}
	if r.Microflow == "" {
		p.Printf("# %s: the packet does not enter at a logical port, so ovn-trace can't be asked\n", inM4(r.Headline))
		return
	}
	status := "0"
	if r.Verdict == string(answer.Unreachable) {
		status = "1"
	}
	p.Printf("# %s\nAT_CHECK([%s | grep -q %s], [%s])\n\n", inM4(r.Packet), inM4(line("ovn-trace", r.TraceArguments())), inM4("'output('"), status)
}

// computes prints the check that OVN computes what a node lacks. Another release can write a logical flow otherwise.
func (r *Result) computes(p *show.Page) {
	p.Printf("# as OVN %s computes it\n", inM4(r.Running.OVN))
	if r.Flow != "" {
		p.Printf("# installed: %s\n", inM4(r.Flow))
	}
	if r.LogicalFlow != "" {
		p.Printf("AT_CHECK([ovn-sbctl lflow-list | grep -qF %s])\n", inM4(show.Word(r.LogicalFlow)))
	}
	p.Printf("\n")
}

// TraceArguments returns the arguments of ovn-trace that ask about the packet.
func (r *Result) TraceArguments() []string {
	return []string{"--minimal", "--ct=new", "--ct=new", r.Datapath, r.Microflow}
}

// inM4 returns a text with Autoconf's quadrigraphs in place of characters that m4 interprets: brackets quote, # begins a comment,
// $ a parameter of a macro, and parentheses without a partner change where the arguments of a macro end.
func inM4(text string) string {
	if !isBalanced(text) {
		text = strings.NewReplacer("(", "@{:@", ")", "@:}@").Replace(text)
	}
	return strings.NewReplacer("[", "@<:@", "]", "@:>@", "$", "@S|@", "#", "@%:@").Replace(text)
}

// isBalanced reports whether each parenthesis of a text has its partner.
func isBalanced(text string) bool {
	open := 0
	for _, char := range text {
		switch char {
		case '(':
			open++
		case ')':
			open--
		}
		if open < 0 {
			return false
		}
	}
	return open == 0
}
