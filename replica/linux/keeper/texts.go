//go:build linux

package keeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ruleTexts are the texts of rules by what the kernel says of a rule: its chain and its handle.
type ruleTexts struct {
	saved    map[string][]string // of iptables, in their order, by chainKey
	byHandle map[string]string   // by ruleKey
}

func chainKey(family, table, chain string) string { return family + " " + table + " " + chain }

func ruleKey(family, table, chain string, handle uint64) string {
	return fmt.Sprint(family, " ", table, " ", chain, " ", handle)
}

// add adds the next rule of a chain of iptables.
func (r *ruleTexts) add(family, table, chain, text string) {
	if r.saved == nil {
		r.saved = map[string][]string{}
	}
	key := chainKey(family, table, chain)
	r.saved[key] = append(r.saved[key], text)
}

// set gives a rule its text.
func (r *ruleTexts) set(family, table, chain string, handle uint64, text string) {
	if r.byHandle == nil {
		r.byHandle = map[string]string{}
	}
	r.byHandle[ruleKey(family, table, chain, handle)] = text
}

// The families of nftables by the kernel's numbers (linux/netfilter.h).
func familyName(number uint8) string {
	switch number {
	case unix.NFPROTO_IPV4:
		return "ip"
	case unix.NFPROTO_IPV6:
		return "ip6"
	case unix.NFPROTO_INET:
		return "inet"
	case unix.NFPROTO_ARP:
		return "arp"
	case unix.NFPROTO_BRIDGE:
		return "bridge"
	case unix.NFPROTO_NETDEV:
		return "netdev"
	}
	return fmt.Sprint(number)
}

// number finds the handles of the rules of iptables: the kernel lists the rules of a chain in their order.
func (r *ruleTexts) number() error {
	if len(r.saved) == 0 {
		return nil
	}
	next := map[string]int{}
	for _, family := range []uint8{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6} {
		err := dumpRules(family, func(data []byte) {
			table, chain, handle := ruleOf(data)
			key := chainKey(familyName(family), table, chain)
			if i := next[key]; i < len(r.saved[key]) {
				r.set(familyName(family), table, chain, handle, r.saved[key][i])
			}
			next[key]++
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dumpRules gives all rules of a family to a function. Its buffer is large, and not the library's: for each message
// the kernel counts again from the first rule.
func dumpRules(family uint8, use func(data []byte)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := netlink.Message{
		Header: netlink.Header{Length: unix.NLMSG_HDRLEN + 4, Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE, Flags: netlink.Request | netlink.Dump},
		Data:   []byte{family, 0, 0, 0},
	}.MarshalBinary()
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for done := false; !done; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		splitMessages(buffer[:n], func(message netlink.Message) {
			switch message.Header.Type {
			case netlink.Done, netlink.Error:
				done = true
			default:
				use(message.Data)
			}
		})
	}
	return nil
}

// splitMessages gives each of several messages to a function.
func splitMessages(raw []byte, use func(netlink.Message)) {
	for len(raw) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(raw))
		if size < unix.NLMSG_HDRLEN || size > len(raw) {
			return
		}
		aligned := min(len(raw), (size+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1))
		use(netlink.Message{
			Header: netlink.Header{Length: uint32(size), Sequence: binary.NativeEndian.Uint32(raw[8:]), Type: netlink.HeaderType(binary.NativeEndian.Uint16(raw[4:])), Flags: netlink.HeaderFlags(binary.NativeEndian.Uint16(raw[6:]))},
			Data:   slices.Clone(raw[unix.NLMSG_HDRLEN:size]),
		})
		raw = raw[aligned:]
	}
}

// ruleOf reads the table, the chain and the handle of a rule in a message of the kernel.
func ruleOf(data []byte) (table, chain string, handle uint64) {
	if len(data) < 4 {
		return "", "", 0
	}
	attributes, err := netlink.NewAttributeDecoder(data[4:])
	if err != nil {
		return "", "", 0
	}
	attributes.ByteOrder = bigEndian()
	for attributes.Next() {
		switch attributes.Type() {
		case unix.NFTA_RULE_TABLE:
			table = attributes.String()
		case unix.NFTA_RULE_CHAIN:
			chain = attributes.String()
		case unix.NFTA_RULE_HANDLE:
			handle = attributes.Uint64()
		}
	}
	return table, chain, handle
}

// bigEndian is the byte order of numbers in messages of netfilter.
func bigEndian() binary.ByteOrder { return binary.BigEndian }

// text returns the text of a rule.
func (r *ruleTexts) text(family, table, chain string, handle uint64) string {
	if text := r.byHandle[ruleKey(family, table, chain, handle)]; text != "" {
		return text
	}
	return fmt.Sprintf("rule with handle %d", handle)
}
