package answer

import "fmt"

// FamilyText returns IPv4 or IPv6, "" for neither.
func FamilyText(family int) string {
	if family == 0 {
		return ""
	}
	return fmt.Sprint("IPv", family)
}
