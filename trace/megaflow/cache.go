// Package megaflow remembers passes of ofproto/trace for later packets. Each pass comes
// with its megaflow: the fields of the packet, and their bits, on which it depended. A
// packet that is equal in these takes the same way, which is what ovs-vswitchd's own
// datapath flows rely on.
package megaflow

import (
	"slices"
	"strings"
	"sync"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/pass"
)

// Cache holds passes. It can be used concurrently.
type Cache struct {
	mu     sync.Mutex
	groups map[string]*group
	size   int
}

// maxPasses bounds a cache: the text of a pass takes some kilobytes.
const maxPasses = 20_000

// group holds the passes of packets that enter the same bridge and have the same fields,
// of which those that no megaflow leaves out have the same values.
type group struct {
	masks []*masked
}

// masked holds the passes whose megaflows have the same masks.
type masked struct {
	fields []field
	passes map[string]*entry // by the values of the packet's bits that the masks select
}

// entry is a pass, and the packet that was asked about.
type entry struct {
	pass  *pass.Pass
	asked flow.Packet
}

// Get returns the pass of a packet that enters a bridge of a node, or that resumes there;
// ok is false if it has to be asked for. The pass has no text.
func (c *Cache) Get(node, bridge string, p flow.Packet) (found *pass.Pass, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[groupOf(node, bridge, p)]
	if g == nil {
		return nil, false
	}
	for _, m := range g.masks {
		key, ok := m.key(p)
		if !ok {
			continue
		}
		if e := m.passes[key]; e != nil {
			return e.of(p), true
		}
	}
	return nil, false
}

// Put remembers the pass of a packet, unless its megaflow does not show on what it
// depended.
func (c *Cache) Put(node, bridge string, p flow.Packet, made *pass.Pass) {
	fields, ok := parse(made.Megaflow)
	if !ok {
		return
	}
	m := &masked{fields: fields, passes: map[string]*entry{}}
	key, ok := m.key(p)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size >= maxPasses || c.groups == nil {
		c.groups, c.size = map[string]*group{}, 0
	}
	name := groupOf(node, bridge, p)
	g := c.groups[name]
	if g == nil {
		g = &group{}
		c.groups[name] = g
	}
	for _, known := range g.masks {
		if known.equal(m) {
			known.passes[key] = &entry{made, p.Clone()}
			c.size++
			return
		}
	}
	m.passes[key] = &entry{made, p.Clone()}
	g.masks = append(g.masks, m)
	c.size++
}

// groupOf returns the name of a packet's group.
func groupOf(node, bridge string, p flow.Packet) string {
	var b strings.Builder
	b.WriteString(node + "\x00" + bridge)
	for _, f := range p.Fields() {
		b.WriteString("\x00" + f.Name)
		if kindOf(f.Name) == exact {
			b.WriteString("=" + f.Value)
		}
	}
	return b.String()
}

// of returns the pass as it is for another packet.
func (e *entry) of(p flow.Packet) *pass.Pass {
	made := *e.pass
	made.Text = ""
	made.Stages = slices.Clone(made.Stages) // Resume changes them
	made.Flow = e.pass.Flow.Clone()         // it has what ovs-vswitchd adds to every packet
	for _, f := range p.Fields() {
		made.Flow.Set(f.Name, f.Value)
	}
	return &made
}
