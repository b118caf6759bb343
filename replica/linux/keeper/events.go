//go:build linux

package keeper

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
)

// ownTable is the name of the tables with which the kernel is asked to trace. It is none of the node's.
const ownTable = "ovs_offline"

// firstChain begins the names of the chains that begin to trace.
const firstChain = "first"

// Groups of netfilter's messages (linux/netfilter/nfnetlink.h), as bits.
const (
	groupNew     = 1 << 0 // NFNLGRP_CONNTRACK_NEW
	groupUpdate  = 1 << 1 // NFNLGRP_CONNTRACK_UPDATE
	groupDestroy = 1 << 2 // NFNLGRP_CONNTRACK_DESTROY
	groupTrace   = 1 << 8 // NFNLGRP_NFTRACE
)

// beforeRaw is the priority of the chain that begins to trace: after fragments are put together, and before all
// usual chains.
const beforeRaw = -350

// watch makes the kernel trace what comes into the namespace, and opens the socket that reports it.
func (s *space) watch(ctx context.Context) {
	if module := s.kernel.missing("nfnetlink", "nf_tables"); module != "" {
		s.report.Remark("no step of a frame can be named: the kernel of this machine has not loaded what that needs: sudo modprobe %s", module)
		return
	}
	if err := s.trace(); err != nil {
		cause := "the kernel of this machine does not trace"
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			cause = "the process that keeps the namespaces can open no more files (ulimit -n)"
		}
		s.report.Remark("no step of a frame can be named: %s: %v", cause, err)
	}
	if err := s.listen(); err != nil {
		s.report.Remark("no step of a frame can be named: %v", err)
	}
	if err := s.rules.number(); err != nil {
		s.report.Remark("steps are named without their rules, which can't be listed: %v", err)
	}
}

// trace adds tables of ours: their first chain marks each packet to be traced, and the last one of each hook shows
// that a packet came so far.
func (s *space) trace() error {
	families := []nftables.TableFamily{nftables.TableFamilyINet}
	for _, d := range s.devices {
		if d.recorded.Kind == "bridge" && d.fd < 0 && len(families) == 1 {
			families = append(families, nftables.TableFamilyBridge)
		}
	}
	for _, family := range families {
		if err := traceFamily(family); err != nil {
			return err
		}
	}
	return nil
}

// hooks are the hooks whose ends are traced.
func hooks() map[string]*nftables.ChainHook {
	return map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "input": nftables.ChainHookInput, "forward": nftables.ChainHookForward,
		"output": nftables.ChainHookOutput, "postrouting": nftables.ChainHookPostrouting}
}

func traceFamily(family nftables.TableFamily) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := conn.AddTable(&nftables.Table{Family: family, Name: ownTable})
	first := conn.AddChain(&nftables.Chain{Name: firstChain, Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(beforeRaw)})
	conn.AddRule(&nftables.Rule{Table: table, Chain: first, Exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: []byte{1}},
		&expr.Meta{Key: expr.MetaKeyNFTRACE, SourceRegister: true, Register: 1},
	}})
	if family == nftables.TableFamilyINet {
		traceProcesses(conn, table)
	}
	for name, hook := range hooks() {
		conn.AddChain(&nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityRef(math.MaxInt32)})
	}
	return conn.Flush()
}

// traceProcesses marks the packets to be traced that are sent as those of a process.
func traceProcesses(conn *nftables.Conn, table *nftables.Table) {
	sent := conn.AddChain(&nftables.Chain{Name: firstChain + "-sent", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityRef(beforeRaw)})
	conn.AddRule(&nftables.Rule{Table: table, Chain: sent, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPRIORITY, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(processPriority)},
		&expr.Immediate{Register: 1, Data: []byte{1}},
		&expr.Meta{Key: expr.MetaKeyNFTRACE, SourceRegister: true, Register: 1},
	}})
}

// listen opens the socket of what netfilter reports.
func (s *space) listen() error {
	groups := uint32(groupTrace)
	if s.kernel.has("nf_conntrack_netlink") {
		groups |= groupNew | groupUpdate | groupDestroy
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return fmt.Errorf("a socket of netfilter: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("listening to netfilter: %w", err)
	}
	s.events = fd
	return nil
}

// drain gives everything that netfilter has reported to a function, and reports whether there was something. lost
// is true if the kernel could not keep all of it.
func (s *space) drain(use func(netlink.Message)) (some, lost bool) {
	if s.events < 0 {
		return false, false
	}
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(s.events, buffer, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			lost = true
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return some, lost
		}
		some = true
		splitMessages(buffer[:n], use)
	}
}

// isTrace reports whether a message is about a traced packet.
func isTrace(message netlink.Message) bool {
	return message.Header.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_TRACE
}

// traced is a message about a traced packet.
type traced struct {
	step   linux.Step
	kind   uint32 // unix.NFT_TRACETYPE_RULE ...
	handle uint64
	mark   uint32 // of the packet
}

// Verdicts of the kernel (linux/netfilter.h, linux/netfilter/nf_tables.h).
func verdictText(code int32, chain string) string {
	switch code {
	case 0:
		return "drop"
	case 1:
		return "accept"
	case 2:
		return "stolen"
	case 3:
		return "queue"
	case 4:
		return "repeat"
	case unix.NFT_CONTINUE:
		return "continue"
	case unix.NFT_BREAK:
		return "break"
	case unix.NFT_JUMP:
		return "jump " + chain
	case unix.NFT_GOTO:
		return "goto " + chain
	case unix.NFT_RETURN:
		return "return"
	}
	return fmt.Sprint(code)
}

// readTrace reads a message about a traced packet.
func (s *space) readTrace(message netlink.Message) (t traced, ok bool) {
	if len(message.Data) < 4 {
		return t, false
	}
	attributes, err := netlink.NewAttributeDecoder(message.Data[4:])
	if err != nil {
		return t, false
	}
	attributes.ByteOrder = bigEndian()
	t.step.Family = familyName(message.Data[0])
	for attributes.Next() {
		switch attributes.Type() {
		case unix.NFTA_TRACE_TABLE:
			t.step.Table = attributes.String()
		case unix.NFTA_TRACE_CHAIN:
			t.step.Chain = attributes.String()
		case unix.NFTA_TRACE_RULE_HANDLE:
			t.handle = attributes.Uint64()
		case unix.NFTA_TRACE_TYPE:
			t.kind = attributes.Uint32()
		case unix.NFTA_TRACE_VERDICT:
			attributes.Nested(func(verdict *netlink.AttributeDecoder) error {
				verdict.ByteOrder = bigEndian()
				code, chain := int32(0), ""
				for verdict.Next() {
					switch verdict.Type() {
					case unix.NFTA_VERDICT_CODE:
						code = int32(verdict.Uint32())
					case unix.NFTA_VERDICT_CHAIN:
						chain = verdict.String()
					}
				}
				t.step.Verdict = verdictText(code, chain)
				return nil
			})
		case unix.NFTA_TRACE_MARK:
			t.mark = attributes.Uint32()
		case unix.NFTA_TRACE_POLICY:
			t.step.Verdict = verdictText(int32(attributes.Uint32()), "")
		}
	}
	switch {
	case t.kind == unix.NFT_TRACETYPE_RULE && t.handle == 0: // so the kernel reports the end of a chain
		t.step.Verdict = "return"
	case t.kind == unix.NFT_TRACETYPE_RULE:
		t.step.Rule = s.rules.text(t.step.Family, t.step.Table, t.step.Chain, t.handle)
	}
	return t, attributes.Err() == nil && t.step.Table != ""
}
