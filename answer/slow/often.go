package slow

import "math"

// often counts how often keys occur, in bounded memory ("lossy counting"): once it holds maxKeys keys, it
// forgets the rarest. A count is then too small by at most lost.
type often[K comparable, V any] struct {
	kept map[K]*counted[V]
	lost int
}

// counted is a count, with what belongs to it.
type counted[V any] struct {
	n     int
	value V
}

// maxKeys bounds the keys.
const maxKeys = 1 << 17

// add counts a key, and returns its count.
func (o *often[K, V]) add(key K) *counted[V] {
	if o.kept == nil {
		o.kept = map[K]*counted[V]{}
	}
	found := o.kept[key]
	if found == nil {
		o.forget()
		found = &counted[V]{}
		o.kept[key] = found
	}
	found.n++
	return found
}

// forget makes room for a key.
func (o *often[K, V]) forget() {
	if len(o.kept) < maxKeys {
		return
	}
	for len(o.kept) > maxKeys/2 {
		least := math.MaxInt
		for _, c := range o.kept {
			least = min(least, c.n)
		}
		for key, c := range o.kept {
			if c.n == least {
				delete(o.kept, key)
			}
		}
		o.lost = max(o.lost, least)
	}
}
