package flow

import (
	"net/netip"
	"slices"
	"strconv"
)

// Field is a field of a packet. A word such as "tcp" has no value.
type Field struct{ Name, Value string }

// fields are the fields of a packet in their order, each name once.
type fields []Field

// index returns the index of a field, -1 if there is no such field.
func (l fields) index(name string) int {
	return slices.IndexFunc(l, func(f Field) bool { return f.Name == name })
}

// Has reports whether there is a field or word.
func (l fields) Has(name string) bool { return l.index(name) >= 0 }

// Get returns the value of a field, "" if there is no such field.
func (l fields) Get(name string) string {
	if i := l.index(name); i >= 0 {
		return l[i].Value
	}
	return ""
}

// Number returns the value of a field that is a number.
func (l fields) Number(name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(l.Get(name), 0, 64)
	return n, err == nil
}

// Address returns the value of a field that is an IP address.
func (l fields) Address(name string) (address netip.Addr, ok bool) {
	address, err := netip.ParseAddr(l.Get(name))
	return address, err == nil
}

// Set gives a field a value, and appends the field if there is none.
func (l *fields) Set(name, value string) {
	if i := l.index(name); i >= 0 {
		(*l)[i].Value = value
		return
	}
	*l = append(*l, Field{name, value})
}

// Prepend puts a field in front of the others, in place of an earlier value.
func (l *fields) Prepend(name, value string) {
	l.Delete(name)
	*l = slices.Insert(*l, 0, Field{name, value})
}

// Delete removes fields.
func (l *fields) Delete(names ...string) {
	l.DeleteFunc(func(name string) bool { return slices.Contains(names, name) })
}

// DeleteFunc removes the fields whose names a function accepts.
func (l *fields) DeleteFunc(accepts func(name string) bool) {
	*l = slices.DeleteFunc(*l, func(f Field) bool { return accepts(f.Name) })
}

// includedIn reports whether other fields include these with the same values. A field that they
// lack is equal to 0 and to "no".
func (l fields) includedIn(other fields) bool {
	for _, field := range l {
		i := other.index(field.Name)
		if i >= 0 && other[i].Value == field.Value || field.Name == "in_port" || field.Name == "eth" {
			continue
		}
		if i >= 0 || !isZero(field) {
			return false
		}
	}
	return true
}

// isZero reports whether a field has the value that a packet without it has.
func isZero(field Field) bool {
	n, err := strconv.ParseUint(field.Value, 0, 64)
	return err == nil && n == 0 || field.Name == "nw_frag" && field.Value == "no" || field.Value == noMAC
}

// noMAC is how a flow prints the address of an option that a packet does not have (nd_sll, nd_tll).
const noMAC = "00:00:00:00:00:00"
