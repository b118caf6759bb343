package ovsdb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Names maps the UUIDs of rows to the names of those rows.
type Names map[string]string

// Compare returns a column of two rows as ovs-vsctl prints it, without quotes,
// and "" twice where the values are equal. Of sets and maps it returns only the
// elements that the other row lacks. A reference to a row is printed as the name
// of that row where it has one.
func Compare(a, b Row, column string, namesA, namesB Names) (inA, inB string) {
	x, y := a.columns[column], b.columns[column]
	if inA, inB = namesA.text(x), namesB.text(y); inA == inB {
		return "", ""
	}
	partsA, setA := namesA.elements(x)
	partsB, setB := namesB.elements(y)
	if setA || setB {
		return missing(partsA, partsB), missing(partsB, partsA)
	}
	return inA, inB
}

// missing prints the elements of list that other lacks. Both are sorted.
func missing(list, other []string) string {
	only := slices.DeleteFunc(slices.Clone(list), func(element string) bool {
		_, found := slices.BinarySearch(other, element)
		return found
	})
	return "{" + strings.Join(only, ", ") + "}"
}

// elements prints the elements of a set or map, sorted; several is false for an
// atom and a set of at most one.
func (n Names) elements(value any) (texts []string, several bool) {
	switch v := value.(type) {
	case rfc.OvsSet:
		for _, element := range v.GoSet {
			texts = append(texts, n.text(element))
		}
		several = len(v.GoSet) > 1
	case rfc.OvsMap:
		for key, element := range v.GoMap {
			texts = append(texts, n.text(key)+"="+n.text(element))
		}
		several = true
	default:
		texts = []string{n.text(v)}
	}
	slices.Sort(texts)
	return texts, several
}

func (n Names) text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case rfc.OvsSet:
		texts, several := n.elements(v)
		if several || len(texts) == 0 {
			return "[" + strings.Join(texts, ", ") + "]"
		}
		return texts[0]
	case rfc.OvsMap:
		texts, _ := n.elements(v)
		return "{" + strings.Join(texts, ", ") + "}"
	case rfc.UUID:
		return cmp.Or(n[v.GoUUID], v.GoUUID)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return v
	}
	return fmt.Sprint(value)
}
