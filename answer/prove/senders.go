package prove

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/answer/trace"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/snapshot/names"
)

// Document has what each sender of a question gets to its target: what "reach --prove -o json" prints.
type Document struct {
	Question string   `json:"question"`
	Verdict  Verdict  `json:"verdict"`
	Proofs   []*Proof `json:"proofs"` // of each sender
}

// prover proves what senders get to a target.
type prover struct {
	session  *trace.Session
	fabric   *fabric
	question names.Question // without From
	machines map[symbolic.Family]*symbolic.Machine
	tracking symbolic.Tracking
	assumed  string // by tracking
}

// Ask proves what gets from endpoints to another one, of packets that open a connection, or those that the session's connections say. From is a name, or a glob pattern for the names of
// endpoints with ports of Open vSwitch. With a port or a protocol, only packets count that arrive for the target's own addresses. Ask calls asked
// after each sender.
func Ask(ctx context.Context, session *trace.Session, between trace.Between, asked func(done, all int)) (*Document, error) {
	p := &prover{session: session, fabric: &fabric{nodes: session.Nodes(), peer: session.Peer}, question: between.Question, machines: map[symbolic.Family]*symbolic.Machine{}}
	p.tracking, p.assumed = trackingOf(session)
	senders, err := p.find(between)
	if err != nil {
		return nil, err
	}
	if p.fabric.targetOn, p.fabric.target, err = session.Attached(p.question.To); err != nil {
		return nil, err
	}
	d := &Document{Question: fmt.Sprintf("%s -> %s", between.From, p.target()), Proofs: []*Proof{}}
	for i, from := range senders {
		proof, err := p.prove(ctx, from)
		if err != nil {
			return nil, err
		}
		d.Proofs = append(d.Proofs, proof)
		asked(i+1, len(senders))
	}
	d.Verdict = Impossible
	for _, verdict := range []Verdict{Possible, Undetermined} {
		if slices.ContainsFunc(d.Proofs, func(proof *Proof) bool { return proof.Verdict == verdict }) {
			d.Verdict = verdict
		}
	}
	return d, nil
}

// find finds the target and returns the senders of a question.
func (p *prover) find(between trace.Between) (senders []names.Endpoint, err error) {
	if !strings.ContainsAny(between.From, "*?[") {
		var from names.Endpoint
		from, p.question.To, p.question.DstPort, err = p.session.Endpoints(between)
		return []names.Endpoint{from}, err
	}
	for _, e := range p.session.Names().Senders() {
		if _, _, err := p.session.Attached(e); err != nil || !names.Matches(between.From, e.Name) {
			continue
		}
		senders = append(senders, e)
	}
	if len(senders) == 0 {
		return nil, fmt.Errorf("%w: no endpoint with a port of Open vSwitch has a name like %s", trace.ErrQuestion, between.From)
	}
	slices.SortFunc(senders, func(a, b names.Endpoint) int { return cmp.Compare(a.Name, b.Name) })
	one := between
	one.From = senders[0].LogicalPort
	_, p.question.To, p.question.DstPort, err = p.session.Endpoints(one)
	return slices.DeleteFunc(senders, func(e names.Endpoint) bool { return e.LogicalPort == p.question.To.LogicalPort }), err
}

// target returns the target as a question names it.
func (p *prover) target() string {
	if p.question.DstPort == 0 {
		return p.question.To.Name
	}
	return fmt.Sprintf("%s:%d", p.question.To.Name, p.question.DstPort)
}

// machine returns the machine for a family, which has compiled the bridges that earlier senders used; a new one where its sets have become large.
func (p *prover) machine(family symbolic.Family) (*symbolic.Machine, error) {
	const large = 4_000_000 // nodes
	if m := p.machines[family]; m != nil && m.Space().Err() == nil && m.Space().Size() < large {
		return m, nil
	}
	m, err := symbolic.New(family, p.fabric)
	if err == nil {
		m.Track(p.tracking)
		p.machines[family] = m
	}
	return m, err
}

// Doubtful reports whether the verdict about a sender is undetermined, or confirmed by no replica.
func (d *Document) Doubtful() bool {
	return slices.ContainsFunc(d.Proofs, func(p *Proof) bool { return p.Verdict == Undetermined || p.NotWitnessed != "" })
}

// alike are senders about which the same is printed.
type alike struct {
	first *Proof
	names []string
}

// Print prints the proofs for people: of many senders how many get packets there, and those with the same sets together.
func (d *Document) Print(page *show.Page) {
	if len(d.Proofs) == 1 {
		d.Proofs[0].print(page)
		return
	}
	count, groups, total := map[Verdict]int{}, []*alike{}, &Proof{}
	known := map[string]*alike{}
	for _, proof := range d.Proofs {
		count[proof.Verdict]++
		total.add(proof)
		key := strings.Join(append(append(proof.sets(), string(proof.Verdict)), proof.Missing...), "\n")
		if known[key] == nil {
			known[key] = &alike{first: proof}
			groups = append(groups, known[key])
		}
		from, _, _ := strings.Cut(proof.Question, " -> ")
		known[key].names = append(known[key].names, from)
	}
	slices.SortStableFunc(groups, func(a, b *alike) int { return cmp.Compare(len(b.names), len(a.names)) })
	doubt := ""
	if count[Undetermined] > 0 {
		doubt = fmt.Sprintf(", %d undetermined", count[Undetermined])
	}
	page.Text("%s  %s: %d of %s get packets there%s\n", d.Verdict, d.Question, count[Possible], phrase.Count(len(d.Proofs), "sender"), doubt)
	total.printBasis(page)
	_, target, _ := strings.Cut(d.Question, " -> ")
	for _, group := range groups {
		page.Printf("\n")
		group.first.printSets(page, phrase.FirstNames(group.names)+" -> "+target)
		group.first.printWitness(page)
	}
}

// add adds what the proof of another sender rests on.
func (p *Proof) add(other *Proof) {
	p.Asked += other.Asked
	p.Disagree = append(p.Disagree, other.Disagree...)
	p.NotWitnessed = cmp.Or(p.NotWitnessed, other.NotWitnessed)
	for _, text := range other.Assumed {
		if !slices.Contains(p.Assumed, text) {
			p.Assumed = append(p.Assumed, text)
		}
	}
}
