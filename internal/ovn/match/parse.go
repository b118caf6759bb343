package match

import (
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Problem says why ovn-controller can't read a match, "" if it can, or if this package does not know.
func Problem(match string) string {
	list, ok := tokens(match)
	if !ok {
		return ""
	}
	p := &parser{rest: list}
	p.expression()
	if p.problem == "" && !p.unknown && len(p.rest) > 0 {
		p.fail("`%s' is not expected", p.rest[0])
	}
	if p.unknown {
		return ""
	}
	return p.problem
}

// parser reads the tokens of a match (lib/expr.c of OVN).
type parser struct {
	rest    []token
	problem string
	unknown bool // it may be right
	depth   int
	negated bool // an odd number of ! is around what is read
}

// maxNested bounds parentheses within each other: ovn-controller has the same limit.
const maxNested = 100

func (p *parser) fail(format string, at token) {
	if p.problem == "" {
		p.problem = strings.Replace(format, "%s", at.text, 1)
	}
	p.rest = nil
}

func (p *parser) peek() token {
	if len(p.rest) == 0 {
		return token{kind: other}
	}
	return p.rest[0]
}

func (p *parser) next() token {
	t := p.peek()
	if len(p.rest) > 0 {
		p.rest = p.rest[1:]
	}
	return t
}

func (p *parser) accept(texts ...string) bool {
	t := p.peek()
	if t.kind != other || !slices.Contains(texts, t.text) {
		return false
	}
	p.next()
	return true
}

// done reports whether reading has ended.
func (p *parser) done() bool { return p.problem != "" || p.unknown }

func (p *parser) expression() {
	if p.depth++; p.depth > maxNested {
		p.unknown = true
		return
	}
	defer func() { p.depth-- }()
	p.factor()
	joined := ""
	for !p.done() && p.peek().kind == other && (p.peek().text == "&&" || p.peek().text == "||") {
		by := p.next().text
		if joined != "" && by != joined {
			p.fail("&& and || must be in parentheses when they are used together", token{})
			return
		}
		joined = by
		p.factor()
	}
}

// factor reads what may be negated.
func (p *parser) factor() {
	if !p.accept("!") {
		p.primary()
		return
	}
	p.negated = !p.negated
	defer func() { p.negated = !p.negated }()
	if atomic := p.primary(); !p.done() && !atomic {
		p.fail("the operand of ! must be in parentheses", token{})
	}
}

// primary reads an expression in parentheses, a predicate, or a comparison. atomic is false for a
// comparison.
func (p *parser) primary() (atomic bool) {
	switch t := p.peek(); {
	case p.accept("("):
		p.expression()
		if !p.done() && !p.accept(")") {
			p.missing(")")
		}
		return true
	case t.kind == symbol && strings.HasPrefix(t.text, "is_"):
		p.unknown = true // a function
		return true
	case t.kind == symbol:
		return p.comparison(p.next())
	}
	return p.reversed()
}

// missing fails for what should be next.
func (p *parser) missing(what string) {
	if len(p.rest) == 0 {
		p.fail("it ends where "+strings.ReplaceAll(what, "%", "")+" is expected", token{})
		return
	}
	p.fail(what+" is expected at `%s'", p.peek())
}

// comparison reads what follows a field.
func (p *parser) comparison(name token) (atomic bool) {
	f := fieldOf(name.text)
	if f.wrong {
		p.fail("there is no field `%s'", name)
		return true
	}
	if p.peek().kind != operator {
		if f.known && !f.predicate {
			p.fail("field `%s' is compared with nothing", name)
		} else if f.nominal && p.negated {
			p.fail("`%s' must not be negated", name)
		}
		return true
	}
	p.measure(f, name)
	p.constants(f)
	return false
}

// reversed reads a comparison that begins with constants, or 0 or 1 alone.
func (p *parser) reversed() (atomic bool) {
	first := p.peek()
	p.constants(field{})
	if p.done() {
		return true
	}
	if p.peek().kind != operator {
		if first.text != "0" && first.text != "1" {
			p.fail("`%s' is compared with no field", first)
		}
		return true
	}
	by := p.next()
	name := p.next()
	if name.kind != symbol {
		p.rest = append([]token{name}, p.rest...)
		p.missing("a field")
		return true
	}
	f := fieldOf(name.text)
	if f.wrong {
		p.fail("there is no field `%s'", name)
		return true
	}
	p.rest = append([]token{by}, p.rest...)
	p.measure(f, name)
	if p.peek().kind == operator {
		p.next()
		p.constants(f)
	}
	return false
}

// measure reads an operator, which has to fit a field.
func (p *parser) measure(f field, name token) {
	only := "=="
	if p.negated {
		only = "!="
	}
	if by := p.next(); f.nominal && by.text != only {
		p.fail("field `%s' may only be tested for equality", name)
	}
}

// constants reads a constant, or several in braces.
func (p *parser) constants(of field) {
	if !p.accept("{") {
		p.constant(of)
		return
	}
	for !p.done() {
		p.constant(of)
		p.accept(",")
		if p.accept("}") {
			return
		}
		if len(p.rest) == 0 && !p.done() {
			p.missing("}")
		}
	}
}

func (p *parser) constant(of field) {
	t := p.peek()
	switch t.kind {
	case integer:
		if why := problemOfNumber(t.text); why != "" {
			p.fail(why, t)
			return
		}
		if of.known && of.text {
			p.fail("`%s' is no name in quotes", t)
			return
		}
	case text, group:
		if of.known && !of.text {
			p.fail("`%s' is compared with a field that has numbers", t)
			return
		}
	case set:
	default:
		p.missing("a constant")
		return
	}
	p.next()
}

var (
	isNumber  = lazyregexp.New(`^(0[xX][0-9A-Fa-f]+|[0-9]+)$`)
	malformed = "`%s' is no address or number"
)

// problemOfNumber says why ovn-controller can't read a number or an address, "" if it can.
func problemOfNumber(number string) string {
	value, mask, masked := strings.Cut(number, "/")
	if !isNumber.MatchString(value) && !isMAC.MatchString(value) && !isAddress(value) {
		return malformed
	}
	if !masked || !isAddress(value) {
		return ""
	}
	_, err := netip.ParsePrefix(number)
	if err != nil && isNumber.MatchString(mask) && !strings.HasPrefix(mask, "0") {
		return malformed
	}
	return ""
}
