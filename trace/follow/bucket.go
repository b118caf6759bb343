package follow

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// A select group chooses a bucket by dp_hash, which depends on the datapath. It looks the
// hash up in a table of 16 to 256 entries (ofproto/ofproto-dpif.c,
// group_setup_dp_hash_table), and a bond in one of 256. The mask of dp_hash in the
// megaflow shows the size, so each entry is tried. A hash of 0 would recirculate again:
// the size itself stands for it.
const (
	someHashes = 16
	allHashes  = 256
)

// alternative is a pass that resumes with a hash, and what distinguishes it.
type alternative struct {
	hash   int
	bucket string // "" if the pass names none
	// backend is the address that the pass translates the destination to, "" for none.
	backend string
	name    string
	key     string
	passes  []*pass.Pass
}

// bucketCache remembers which hashes choose different buckets of a group, so that later
// questions try only those.
type bucketCache struct {
	mu     sync.Mutex
	hashes map[string][]int // by node, bridge, and the group's stage
}

// maxGroups bounds the cache.
const maxGroups = 100_000

func (c *bucketCache) get(key string) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hashes[key]
}

func (c *bucketCache) put(key string, hashes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hashes == nil || len(c.hashes) == maxGroups {
		c.hashes = map[string][]int{}
	}
	c.hashes[key] = hashes
}

// choose continues a packet that a group or bond distributes by a hash.
func (s *step) choose(ctx context.Context, id uint32, f frame) error {
	f.hashed = false
	list, err := s.alternatives(ctx, id, f)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.add(Branch{}, f).fail(err)
		return nil
	}
	list = s.selected(named(list))
	before := s.state
	for _, a := range list {
		b := Branch{Kind: Recirculated, Why: "a hash of the packet chooses", Track: f.track, Connection: f.found, Bucket: a.bucket, Backend: a.backend}
		if len(list) > 1 {
			b.Choice = a.name
		}
		if a.bucket != "" {
			b.Why = "the group chooses bucket " + a.bucket + " by a hash of the packet"
		}
		s.state = before
		err := s.goOn(ctx, b, f, func(at count) (*Hop, *State, error) {
			return s.continued(a.passes, resumed(id, a.hash, f), at).run(ctx, a.passes[0], f, before)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// named sorts alternatives by their buckets and names them: by the backend that each
// translates to, or else by the bucket.
func named(list []alternative) []alternative {
	number := func(a alternative) int { n, _ := strconv.Atoi(a.bucket); return n }
	slices.SortStableFunc(list, func(a, b alternative) int { return cmp.Compare(number(a), number(b)) })
	for i := range list {
		a := &list[i]
		a.backend = backendOf(a.passes[0].Actions)
		switch {
		case a.backend != "":
			a.name = fmt.Sprintf("backend %s (%d of %d)", a.backend, i+1, len(list))
		case a.bucket != "":
			a.name = "bucket " + a.bucket
		default:
			a.name = fmt.Sprintf("dp_hash %d", a.hash)
		}
	}
	return list
}

// backendOf returns the address, with the port if there is one, to which actions translate
// the destination, "" for none.
func backendOf(actions []odp.Action) string {
	for _, action := range actions {
		t, ok := action.(odp.Track)
		if !ok || t.NAT == nil || !t.NAT.Dst || !t.NAT.Min.IsValid() {
			continue
		}
		if t.NAT.MinPort == 0 {
			return t.NAT.Min.String()
		}
		return netip.AddrPortFrom(t.NAT.Min, t.NAT.MinPort).String()
	}
	return ""
}

// selected returns the alternatives that the options leave.
func (s *step) selected(list []alternative) []alternative {
	for _, a := range list {
		if want := s.tracer.options.Bucket; want != "" && (a.bucket == want || a.backend == want) {
			return []alternative{a}
		}
	}
	return list
}

// alternatives returns the passes that differ.
func (s *step) alternatives(ctx context.Context, id uint32, f frame) ([]alternative, error) {
	key := s.groupKey()
	if hashes := s.tracer.buckets.get(key); key != "" && hashes != nil {
		return s.try(ctx, id, f, hashes)
	}
	list, err := s.try(ctx, id, f, []int{1})
	if err != nil {
		return nil, err
	}
	size := min(int(list[0].passes[0].HashMask())+1, allHashes)
	if size == 1 {
		size = someHashes
	}
	more, err := s.try(ctx, id, f, numbers(2, size))
	if err != nil {
		return nil, err
	}
	list = distinct(append(list, more...))
	if key != "" {
		var hashes []int
		for _, a := range list {
			hashes = append(hashes, a.hash)
		}
		s.tracer.buckets.put(key, hashes)
	}
	return list, nil
}

func numbers(from, to int) []int {
	var list []int
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// groupKey identifies the group for which the pass recirculates; "" if that is not
// clear.
func (s *step) groupKey() string {
	p := s.hop.Pass
	key := ""
	for _, stage := range p.Stages {
		for _, l := range stage.Lines {
			if strings.HasPrefix(l, "group:") {
				if key != "" {
					return ""
				}
				key = fmt.Sprintf("%s/%s/%d/%x/%s", s.host.Name, stage.Bridge, stage.Table, stage.Cookie, l)
			}
		}
	}
	return key
}

func (s *step) try(ctx context.Context, id uint32, f frame, hashes []int) ([]alternative, error) {
	var list []alternative
	for _, hash := range hashes {
		passes, err := s.ask(ctx, s.host, s.hop.Bridge, resumed(id, hash, f))
		if err != nil {
			return nil, err
		}
		a := alternative{hash: hash, passes: passes, key: outcome(passes[0])}
		if buckets := passes[0].Buckets(); len(buckets) > 0 {
			a.bucket = buckets[0]
		}
		list = append(list, a)
	}
	return distinct(list), nil
}

var anyRecirculation = regexp.MustCompile(`recirc\(0x[0-9a-f]+\)|recirc_id=\d+`)

// outcome returns what a pass does, without the ids that differ between two runs.
func outcome(p *pass.Pass) string {
	return strings.Join(p.Buckets(), ",") + " " + anyRecirculation.ReplaceAllString(p.ActionsText, "recirc")
}

// distinct returns the first alternative of each outcome.
func distinct(list []alternative) []alternative {
	seen := map[string]bool{}
	var out []alternative
	for _, a := range list {
		if !seen[a.key] {
			seen[a.key] = true
			out = append(out, a)
		}
	}
	return out
}
