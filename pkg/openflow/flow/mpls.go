package flow

import "errors"

// Encapsulate adds a header between the packet's Ethernet header and what follows it.
// word names the new Ethernet type ("mpls"), and header has the new fields.
func (p *Packet) Encapsulate(word string, header Packet) {
	below := p.Clone()
	outer := Packet{below: &below}
	outer.Set(word, "")
	for _, field := range p.fields {
		if isEthernet(field.Name) || isLocal(field.Name) {
			outer.Set(field.Name, field.Value)
		}
	}
	for _, field := range header.fields {
		outer.Set(field.Name, field.Value)
	}
	*p = outer
}

// Decapsulate removes the header that Encapsulate added. The Ethernet header stays.
func (p *Packet) Decapsulate() error {
	if p.below == nil {
		return errors.New("what follows the MPLS header is not known")
	}
	inner := p.below.Clone()
	for _, field := range p.fields {
		if isEthernet(field.Name) || isLocal(field.Name) {
			inner.Set(field.Name, field.Value)
		}
	}
	*p = inner
	return nil
}

// isEthernet reports whether a field is of the Ethernet header.
func isEthernet(name string) bool {
	switch name {
	case "dl_src", "dl_dst", "dl_vlan", "dl_vlan_pcp", "vlan_tci", "dl_vlan1", "dl_vlan_pcp1":
		return true
	}
	return false
}
