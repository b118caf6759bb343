//go:build linux

package keeper

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// maxMemory bounds the bytes of the kernel's memory that sets, and the tables of single rules, take in all namespaces: one line of a
// report can ask for any size.
const maxMemory = 48 << 20

// overMemory says why a set or a rule is not restored.
const overMemory = "sets and tables of rules may take 48 MB of the kernel's memory, in all namespaces"

// take takes bytes of what is left of maxMemory, and reports whether there are enough.
func (k *kernel) take(bytes int) bool {
	if bytes > maxMemory {
		return false
	}
	if k.taken.Add(int64(bytes)) > maxMemory {
		k.taken.Add(-int64(bytes))
		return false
	}
	return true
}

// maxHashSize is the most buckets with which a set begins. The kernel makes more when there are many entries.
const maxHashSize = 1 << 16

// limitHashSize lowers the number of buckets of a set as "ipset save" prints it, and reports whether it did.
func limitHashSize(words []string) (limited bool) {
	for i := 1; i < len(words); i++ {
		if n, err := strconv.ParseUint(words[i], 0, 64); err == nil && n > maxHashSize && words[i-1] == "hashsize" {
			words[i], limited = strconv.Itoa(maxHashSize), true
		}
	}
	return limited
}

// setMemory returns about how many bytes the kernel takes for a line of "ipset save" (mtype_create of
// net/netfilter/ipset/ip_set_hash_gen.h, bitmap_ipmac_create and the like).
func setMemory(words []string) int {
	const set, entry, bucket, ofBitmap, withMAC = 2048, 40, 9, 1 << 16, 16
	if words[0] == "add" {
		return entry + len(strings.Join(words, " "))
	}
	if strings.HasPrefix(words[2], "bitmap:") {
		each := 0
		for word, bytes := range map[string]int{"bitmap:ip,mac": withMAC, "timeout": 8, "counters": 16, "comment": 8, "skbinfo": 16} {
			if slices.Contains(words, word) {
				each += bytes
			}
		}
		return set + ofBitmap/8 + each*ofBitmap
	}
	size := 1024
	if i := slices.Index(words, "hashsize"); i > 0 && i+1 < len(words) {
		if n, err := strconv.ParseUint(words[i+1], 0, 32); err == nil {
			size = int(n)
		}
	}
	return set + bucket<<bits.Len(uint(max(size, 1)-1))
}

// ruleMemory returns about how many bytes the kernel takes for what a rule of iptables has beside itself: the tables of hashlimit and
// recent, which rules with the same name share (htable_create of net/netfilter/xt_hashlimit.c, recent_mt_check of xt_recent.c), the
// trees of connlimit (nf_conncount.c), and the program of u32.
func (s *space) ruleMemory(words []string) (bytes int) {
	const recent, connlimit, u32, ofBucket = 5 << 10, 3 << 10, 2 << 10, 16
	name, size := "", 8192
	for i, word := range words[:len(words)-1] {
		switch next := words[i+1]; word {
		case "--hashlimit-name", "--name":
			name = next
		case "--hashlimit-htable-size":
			if n, err := strconv.ParseUint(next, 0, 32); err == nil {
				size = int(n)
			}
		}
	}
	for i, word := range words[:len(words)-1] {
		if word != "-m" {
			continue
		}
		extension := words[i+1]
		shared := extension + " " + name
		switch {
		case extension == "connlimit":
			bytes += connlimit
		case extension == "u32":
			bytes += u32
		case extension != "hashlimit" && extension != "recent" || s.shared[shared]:
		default:
			if s.shared == nil {
				s.shared = map[string]bool{}
			}
			s.shared[shared] = true
			bytes += recent
			if extension == "hashlimit" {
				bytes += ofBucket * size
			}
		}
	}
	return bytes
}

// memory returns how many bytes the kernel takes for the table of a set or map of nft, whose size it takes for its number of entries
// unless these come and go, or are ranges (nft_hash_buckets of net/netfilter/nft_set_hash.c).
func (o nftObject) memory() int {
	size := 0
	for line := range strings.Lines(o.text) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "flags":
			return 0
		case len(words) > 1 && words[0] == "size":
			if n, err := strconv.ParseUint(words[1], 0, 32); err == nil {
				size = int(n)
			}
		}
	}
	return 8 << bits.Len(uint(size/3*4))
}
