package cmd

import (
	"ovs-offline/internal/fault"

	"github.com/spf13/cobra"
)

// families are the flags -4 and -6.
type families struct{ ipv4, ipv6 bool }

func (f *families) add(command *cobra.Command) {
	command.Flags().BoolVarP(&f.ipv4, "ipv4", "4", false, "ask over IPv4")
	command.Flags().BoolVarP(&f.ipv6, "ipv6", "6", false, "ask over IPv6 (default: IPv4 where both ends have it)")
}

// family returns 4 or 6, or 0 without a flag.
func (f *families) family() (int, error) {
	switch {
	case f.ipv4 && f.ipv6:
		return 0, fault.Usagef("-4 and -6 exclude each other: ask twice")
	case f.ipv4:
		return 4, nil
	case f.ipv6:
		return 6, nil
	}
	return 0, nil
}
