package follow

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
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

// choose continues a packet that a group or bond distributes by a hash, with each choice.
func (s *step) choose(ctx context.Context, id uint32, frame frame) error {
	frame.hashed = false
	list, err := hashing{s, id, frame}.alternatives(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.add(Branch{}, frame).fail(err)
		return nil
	}
	list = selectBucket(nameAlternatives(list), s.tracer.options.Bucket)
	before := s.state
	for _, choice := range list {
		branch := Branch{Kind: Recirculated, Why: "a hash of the packet chooses", Track: frame.track, Lookup: frame.found, Bucket: choice.bucket, Backend: choice.backend}
		if len(list) > 1 {
			branch.Choice = choice.name
		}
		if choice.bucket != "" {
			branch.Why = "the group chooses bucket " + choice.bucket + " by a hash of the packet"
		}
		s.state = before
		err := s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) {
			return s.nextStep(choice.passes, recirculated(id, choice.hash, frame), at).run(ctx, choice.passes[0], frame, before)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nameAlternatives sorts alternatives by their buckets and names them: by the backend that each
// translates to, or else by the bucket.
func nameAlternatives(list []alternative) []alternative {
	number := func(a alternative) int { n, _ := strconv.Atoi(a.bucket); return n }
	slices.SortStableFunc(list, func(a, b alternative) int { return cmp.Compare(number(a), number(b)) })
	for i := range list {
		named := &list[i]
		named.backend = backendOf(named.passes[0].Actions)
		switch {
		case named.backend != "":
			named.name = fmt.Sprintf("backend %s (%d of %d)", named.backend, i+1, len(list))
		case named.bucket != "":
			named.name = "bucket " + named.bucket
		default:
			named.name = fmt.Sprintf("dp_hash %d", named.hash)
		}
	}
	return list
}

// backendOf returns the address, with the port if there is one, to which actions translate
// the destination, "" for none.
func backendOf(actions []odp.Action) string {
	for _, action := range actions {
		track, ok := action.(odp.Track)
		if !ok || track.NAT == nil || !track.NAT.Dst || !track.NAT.Min.IsValid() {
			continue
		}
		if track.NAT.MinPort == 0 {
			return track.NAT.Min.String()
		}
		return netip.AddrPortFrom(track.NAT.Min, track.NAT.MinPort).String()
	}
	return ""
}

// selectBucket returns the alternative with a bucket, named by its id or the address of its
// backend, or all if none has it.
func selectBucket(list []alternative, bucket string) []alternative {
	for _, choice := range list {
		if bucket != "" && (choice.bucket == bucket || choice.backend == bucket) {
			return []alternative{choice}
		}
	}
	return list
}

// hashing is a recirculation of a packet after which a hash chooses how it goes on.
type hashing struct {
	from  *step // whose pass recirculates the packet
	id    uint32
	frame frame
}

// alternatives returns the passes that differ.
func (h hashing) alternatives(ctx context.Context) ([]alternative, error) {
	buckets, key := &h.from.tracer.buckets, groupKey(h.from.host.Name, h.from.hop.Pass)
	if hashes := buckets.get(key); key != "" && hashes != nil {
		return h.try(ctx, hashes)
	}
	list, err := h.try(ctx, []int{1})
	if err != nil {
		return nil, err
	}
	size := min(int(list[0].passes[0].HashMask())+1, allHashes)
	if size == 1 {
		size = someHashes
	}
	more, err := h.try(ctx, numbersFrom(2, size))
	if err != nil {
		return nil, err
	}
	list = withoutRepeats(append(list, more...))
	if key != "" {
		var hashes []int
		for _, a := range list {
			hashes = append(hashes, a.hash)
		}
		buckets.put(key, hashes)
	}
	return list, nil
}

// numbersFrom returns the numbers from one to another, both included.
func numbersFrom(from, to int) []int {
	var list []int
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// groupKey identifies the group for which a pass on a node recirculates; "" if that is not
// clear.
func groupKey(node string, printed *pass.Pass) string {
	key := ""
	for _, stage := range printed.Stages {
		for _, line := range stage.Lines {
			if strings.HasPrefix(line, "group:") {
				if key != "" {
					return ""
				}
				key = fmt.Sprintf("%s/%s/%d/%x/%s", node, stage.Bridge, stage.Table, stage.Cookie, line)
			}
		}
	}
	return key
}

// try returns the passes of some hashes that differ.
func (h hashing) try(ctx context.Context, hashes []int) ([]alternative, error) {
	var list []alternative
	for _, hash := range hashes {
		passes, err := h.from.ask(ctx, h.from.host, h.from.hop.Bridge, recirculated(h.id, hash, h.frame))
		if err != nil {
			return nil, err
		}
		found := alternative{hash: hash, passes: passes, key: effectOf(passes[0])}
		if buckets := passes[0].Buckets(); len(buckets) > 0 {
			found.bucket = buckets[0]
		}
		list = append(list, found)
	}
	return withoutRepeats(list), nil
}

var anyRecirculation = lazyregexp.New(`recirc\(0x[0-9a-f]+\)|recirc_id=\d+`)

// effectOf returns what a pass does, without the ids that differ between two runs.
func effectOf(printed *pass.Pass) string {
	return strings.Join(printed.Buckets(), ",") + " " + anyRecirculation.ReplaceAllString(printed.ActionsText, "recirc")
}

// withoutRepeats removes each alternative that does the same as an earlier one.
func withoutRepeats(list []alternative) []alternative {
	seen := map[string]bool{}
	var first []alternative
	for _, choice := range list {
		if !seen[choice.key] {
			seen[choice.key] = true
			first = append(first, choice)
		}
	}
	return first
}
