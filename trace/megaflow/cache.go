// Package megaflow remembers passes of ofproto/trace for later packets. Each pass comes
// with its megaflow: the fields of the packet, and their bits, on which it depended. A
// packet that is equal in these takes the same way, which is what ovs-vswitchd's own
// datapath flows rely on.
package megaflow

import (
	"context"
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
	older  map[string]*group // what groups had before it was full
	size   int               // of groups
	asking map[string]chan struct{}
}

// maxPasses bounds the passes after which the older ones are forgotten. A pass takes some
// kilobytes.
const maxPasses = 4_000

// group holds the passes of packets that enter the same bridge and have the same fields,
// of which those that no megaflow leaves out have the same values.
type group struct {
	masks []*masked
}

// masked holds the passes whose megaflows have the same masks.
type masked struct {
	fields []field
	passes map[string]*pass.Pass // by the values of the packet's bits that the masks select
}

// Get returns the pass of a packet that enters a bridge of a node, or that resumes there;
// ok is false if it has to be asked for. The pass has no text.
func (c *Cache) Get(node, bridge string, p flow.Packet) (found *pass.Pass, ok bool) {
	name := groupOf(node, bridge, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(name, p)
}

func (c *Cache) get(name string, p flow.Packet) (found *pass.Pass, ok bool) {
	for _, groups := range []map[string]*group{c.groups, c.older} {
		g := groups[name]
		if g == nil {
			continue
		}
		for _, m := range g.masks {
			key, ok := m.key(p)
			if !ok {
				continue
			}
			if e := m.passes[key]; e != nil {
				return of(e, p), true
			}
		}
	}
	return nil, false
}

// Await works like Get. If a packet that differs only in its ports is being asked about, it
// waits for that answer, which often serves both. If found is nil, the caller has to ask,
// and to call done after Put.
func (c *Cache) Await(ctx context.Context, node, bridge string, p flow.Packet) (found *pass.Pass, done func(), err error) {
	name := groupOf(node, bridge, p)
	similar := name
	for _, f := range p.Fields() {
		if f.Name != "tp_src" && f.Name != "tp_dst" && f.Name != "ct_tp_src" && f.Name != "ct_tp_dst" {
			similar += "\x00" + f.Value
		}
	}
	for {
		c.mu.Lock()
		found, ok := c.get(name, p)
		other := c.asking[similar]
		if !ok && other == nil {
			if c.asking == nil {
				c.asking = map[string]chan struct{}{}
			}
			c.asking[similar] = make(chan struct{})
		}
		c.mu.Unlock()
		switch {
		case ok:
			return found, nil, nil
		case other == nil:
			return nil, func() { c.asked(similar) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (c *Cache) asked(similar string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking[similar])
	delete(c.asking, similar)
}

// Put remembers the pass of a packet, unless its megaflow does not show on what it
// depended.
func (c *Cache) Put(node, bridge string, p flow.Packet, made *pass.Pass) {
	fields, ok := parse(made.Megaflow)
	if !ok {
		return
	}
	m := &masked{fields: fields, passes: map[string]*pass.Pass{}}
	key, ok := m.key(p)
	if !ok {
		return
	}
	kept := made.Detached()
	name := groupOf(node, bridge, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size >= maxPasses || c.groups == nil {
		c.older, c.groups, c.size = c.groups, map[string]*group{}, 0
	}
	g := c.groups[name]
	if g == nil {
		g = &group{}
		c.groups[name] = g
	}
	for _, known := range g.masks {
		if known.equal(m) {
			known.passes[key] = kept
			c.size++
			return
		}
	}
	m.passes[key] = kept
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
func of(kept *pass.Pass, p flow.Packet) *pass.Pass {
	made := *kept
	made.Stages = slices.Clone(made.Stages) // Resume changes them
	made.Flow = kept.Flow.Clone()           // it has what ovs-vswitchd adds to every packet
	for _, f := range p.Fields() {
		made.Flow.Set(f.Name, f.Value)
	}
	return &made
}
