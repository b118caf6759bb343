package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
)

// families are the flags -4 and -6.
type families struct{ ipv4, ipv6 bool }

func (f *families) add(c *cobra.Command) {
	c.Flags().BoolVarP(&f.ipv4, "ipv4", "4", false, "ask over IPv4")
	c.Flags().BoolVarP(&f.ipv6, "ipv6", "6", false, "ask over IPv6 (default: IPv4 where both ends have it)")
}

// family returns 4 or 6, or 0 without a flag.
func (f *families) family() (int, error) {
	switch {
	case f.ipv4 && f.ipv6:
		return 0, fmt.Errorf("%w: -4 and -6 exclude each other: ask twice", errUsage)
	case f.ipv4:
		return 4, nil
	case f.ipv6:
		return 6, nil
	}
	return 0, nil
}

// familyText returns IPv4 or IPv6, "" for neither.
func familyText(family int) string {
	if family == 0 {
		return ""
	}
	return fmt.Sprint("IPv", family)
}
