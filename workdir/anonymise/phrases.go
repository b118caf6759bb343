package anonymise

import (
	"bytes"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// A phrase is a name of several words that all have a meaning, as neutron-net-a: each word stays elsewhere, and the name is
// replaced as a whole. One that Open vSwitch, OVN, Neutron or a Kubernetes network plugin gives stays.

// given matches the names that programs give, and the beginnings of others that they read: of Open vSwitch and the programs that
// make its bridges, of OVN, of Neutron (ml2/drivers/ovn), of ovn-kubernetes (go-controller/pkg/types) and of kube-ovn (pkg/util).
var given = lazyregexp.New(`^(?:br-|breth\d|ovn[-_]|ovnkube|genev_sys|vxlan_sys|patch-|_|neutron_pg_|acl[-_]log|arp-|copp|join|transit|cluster|` +
	`node[-_]local|GR_|(?:rto|jto|sto|eto)[a-z]-|ext_|Service_|default[-_]|kube-|openshift-|localnet|EIP-|pod/)`)

// beginning matches the beginning of a name of the deployment that says what it names.
var beginning = lazyregexp.New(`^(?:neutron-|lrp-|lr_|cr-|provnet-|vpc-|tstor-)*`)

// addName adds a name whose words all stay, also one of one word if it can be known where it is.
func (f *found) addName(name string, stays vocabulary, canBeKnown bool) {
	if given.MatchString(name) || !isWordPart(lastOf(name)) {
		return
	}
	words, letters, first := 0, false, ""
	tokens([]byte(name), func(_ []byte, t token) {
		switch {
		case t.kind == word && stays.has(string(t.text)):
			if words++; words == 1 {
				first = string(t.text)
			}
			letters = letters || !isDigit(t.text[0])
		case t.kind != other || words == 0:
			words = -1 << 30
		}
	})
	if words == 1 && letters && first == name && canBeKnown && isSingle(name) {
		f.singles[name] = true
	}
	if words > 1 && letters && !slices.Contains(f.phrases[first], name) {
		f.phrases[first] = append(f.phrases[first], name)
	}
}

func lastOf(name string) byte {
	if name == "" {
		return 0
	}
	return name[len(name)-1]
}

// sortPhrases puts the longest first: a phrase can begin another.
func (f *found) sortPhrases() {
	for _, names := range f.phrases {
		slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	}
}

// phrase returns the phrase that begins at an offset of a text, "" for none.
func (f *found) phrase(text []byte, at int, first []byte) string {
	for _, name := range f.phrases[string(first)] {
		if bytes.HasPrefix(text[at:], []byte(name)) && ends(text, at+len(name)) {
			return name
		}
	}
	return ""
}

// replacedPhrase replaces each word of a phrase after its beginning.
func (r *renamer) replacedPhrase(name string) string {
	if _, known := r.words[name]; !known {
		start := beginning.FindString(name)
		var to strings.Builder
		tokens([]byte(name[len(start):]), func(_ []byte, t token) {
			if t.kind == word {
				to.WriteString(r.key.name(string(t.text)))
			} else {
				to.Write(t.text)
			}
		})
		r.words[name] = start + to.String()
	}
	return r.words[name]
}
