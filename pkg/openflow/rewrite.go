package openflow

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// rewrites lists the texts that ovs-ofctl prints and cannot read back: a name, and a
// function that returns a readable text with the same meaning. The comment names the
// OVS versions in which this was seen.
var rewrites = []struct {
	name string
	fix  func(string) string
}{
	{"masked set_field of a field that takes no mask", rewriteSetField}, // 2.13 to 3.1
	{"igmp, which ovs-ofctl prints and cannot read", rewriteIGMP},       // all
	{"gtpu fields without their tun_ prefix", rewriteGTPU},              // 2.13 to 3.1
}

// Rewrite returns the text of a flow or a group in a form that ovs-ofctl can read, and
// the names of the rewrites that changed it.
func Rewrite(text string) (rewritten string, names []string) {
	for _, r := range rewrites {
		if fixed := r.fix(text); fixed != text {
			text = fixed
			names = append(names, r.name)
		}
	}
	return text, names
}

// maskedField matches the notation of OpenFlow 1.5 dumps for a load into a part of a
// field, or into a field whose width is not a multiple of eight bits.
var maskedField = lazyregexp.New(`set_field:(0x[0-9a-fA-F]+|[0-9]+)/(0x[0-9a-fA-F]+|[0-9]+)->([a-z0-9_]+)`)

// setsMasked reports whether rewriteSetField may change text. This avoids the pattern,
// which costs more than everything else that is done with a flow, for nearly all flows.
func setsMasked(text string) bool {
	for part := range strings.SplitSeq(text, "set_field:") {
		value, name, _ := strings.Cut(part, "->")
		if !strings.Contains(value, "/") {
			continue
		}
		if end := strings.IndexFunc(name, func(c rune) bool { return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') }); end >= 0 {
			name = name[:end]
		}
		if fieldsByName()[name].load != "" {
			return true
		}
	}
	return false
}

func rewriteSetField(text string) string {
	if !setsMasked(text) {
		return text
	}
	return maskedField.ReplaceAllStringFunc(text, func(action string) string {
		part := maskedField.FindStringSubmatch(action)
		name := fieldsByName()[part[3]].load
		value, err1 := strconv.ParseUint(part[1], 0, 64)
		mask, err2 := strconv.ParseUint(part[2], 0, 64)
		if name == "" || err1 != nil || err2 != nil || mask == 0 {
			return action
		}
		return strings.Join(loads(value, mask, name), ",")
	})
}

// loads returns one load for each run of ones in the mask.
func loads(value, mask uint64, name string) []string {
	var out []string
	for mask != 0 {
		low := bits.TrailingZeros64(mask)
		width := bits.TrailingZeros64(^(mask >> low))
		run := uint64(1)<<width - 1
		out = append(out, fmt.Sprintf("load:%#x->%s[%d..%d]", value>>low&run, name, low, low+width-1))
		mask &^= run << low
	}
	return out
}

// rewriteIGMP rewrites an IGMP match as ovs-save does (type and code first).
func rewriteIGMP(text string) string {
	return rewriteMatch(text, "igmp", func(token string) string {
		switch key, value, _ := strings.Cut(token, "="); key {
		case "igmp":
			return "ip,nw_proto=2"
		case "igmp_type":
			return "tp_src=" + value
		case "igmp_code":
			return "tp_dst=" + value
		}
		return token
	})
}

func rewriteGTPU(text string) string {
	return rewriteMatch(text, "gtpu_", func(token string) string {
		if strings.HasPrefix(token, "gtpu_") {
			return "tun_" + token
		}
		return token
	})
}

// rewriteMatch replaces each token of a flow's match that holds word.
func rewriteMatch(text, word string, replace func(token string) string) string {
	match, actions, ok := cutActions(text)
	if !ok || !strings.Contains(match, word) {
		return text
	}
	list := slices.Collect(Tokens(match))
	for i, token := range list {
		list[i] = replace(token)
	}
	return strings.Join(list, ",") + " actions=" + actions
}
