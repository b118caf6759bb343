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

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// Cache holds passes. It can be used concurrently.
type Cache struct {
	mu     sync.Mutex
	groups map[string]*group
	older  map[string]*group // what groups had before it was full
	size   int               // of groups
	asking map[string]chan struct{}
}

// maxPasses bounds the passes after which the older ones are forgotten. A pass takes some ten
// kilobytes, and questions that have a pass in common are mostly asked near each other.
const maxPasses = 1_500

// group holds the passes of packets that enter the same bridge and have the same fields. The
// fields that isMasked does not accept have the same values as well.
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
func (c *Cache) Get(node, bridge string, packet flow.Packet) (found *pass.Pass, ok bool) {
	name := groupOf(node, bridge, packet)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(name, packet)
}

// get works like Get while mu is held.
func (c *Cache) get(name string, packet flow.Packet) (found *pass.Pass, ok bool) {
	for _, groups := range []map[string]*group{c.groups, c.older} {
		members := groups[name]
		if members == nil {
			continue
		}
		for _, masks := range members.masks {
			key, ok := masks.key(packet)
			if !ok {
				continue
			}
			if kept := masks.passes[key]; kept != nil {
				return passFor(kept, packet), true
			}
		}
	}
	return nil, false
}

// Await works like Get. If a packet that differs only in its ports is being asked about, it
// waits for that answer, which often serves both. If found is nil, the caller has to ask,
// and to call done after Put.
func (c *Cache) Await(ctx context.Context, node, bridge string, packet flow.Packet) (found *pass.Pass, done func(), err error) {
	name := groupOf(node, bridge, packet)
	similar := name
	for _, field := range packet.Fields() {
		if field.Name != "tp_src" && field.Name != "tp_dst" && field.Name != "ct_tp_src" && field.Name != "ct_tp_dst" {
			similar += "\x00" + field.Value
		}
	}
	for {
		c.mu.Lock()
		found, ok := c.get(name, packet)
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
			return nil, func() { c.endAsking(similar) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// endAsking wakes the questions that wait for the answer about a similar packet.
func (c *Cache) endAsking(similar string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking[similar])
	delete(c.asking, similar)
}

// Put remembers the pass of a packet, unless its megaflow does not show on what it
// depended.
func (c *Cache) Put(node, bridge string, packet flow.Packet, made *pass.Pass) {
	kept := made.Detached()
	fields, ok := parseMasks(kept.Megaflow) // no part of the text of made
	if !ok {
		return
	}
	added := &masked{fields: fields, passes: map[string]*pass.Pass{}}
	key, ok := added.key(packet)
	if !ok {
		return
	}
	name := groupOf(node, bridge, packet)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size >= maxPasses || c.groups == nil {
		c.older, c.groups, c.size = c.groups, map[string]*group{}, 0
	}
	members := c.groups[name]
	if members == nil {
		members = &group{}
		c.groups[name] = members
	}
	for _, known := range members.masks {
		if known.equal(added) {
			known.passes[key] = kept
			c.size++
			return
		}
	}
	added.passes[key] = kept
	members.masks = append(members.masks, added)
	c.size++
}

// groupOf returns the name of a packet's group.
func groupOf(node, bridge string, packet flow.Packet) string {
	var b strings.Builder
	b.WriteString(node + "\x00" + bridge)
	for _, field := range packet.Fields() {
		b.WriteString("\x00" + field.Name)
		if !isMasked(field.Name) {
			b.WriteString("=" + field.Value)
		}
	}
	return b.String()
}

// passFor returns a kept pass for another packet.
func passFor(kept *pass.Pass, packet flow.Packet) *pass.Pass {
	made := *kept
	made.Stages = slices.Clone(made.Stages) // Resume changes them
	made.Flow = kept.Flow.Clone()           // it has what ovs-vswitchd adds to every packet
	for _, field := range packet.Fields() {
		made.Flow.Set(field.Name, field.Value)
	}
	return &made
}
