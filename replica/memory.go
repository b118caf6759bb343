package replica

import (
	"context"
	"fmt"

	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// ovs-vswitchd's memory is limited, because a trace may not end: in Open vSwitch 3.1.0 a
// flow with ct(table=0) makes ofproto/trace recirculate for ever, and use 40 MB more each
// second, also after ovs-appctl has ended. 3.1.5, 3.2.3 and 3.3.1 end such a trace.
const (
	mebibyte = 1 << 20
	// minRoom is the memory that ovs-vswitchd gets in any case beyond what it uses.
	minRoom = 512 * mebibyte
	// maxRoom is for replicas of millions of flows, whose memory doubles while they are
	// replaced.
	maxRoom = 8192 * mebibyte
)

// roomForUse returns the room of a restored ovs-vswitchd. To replace all flows in one bundle
// takes 1.4 times what it uses (measured with a million flows).
func roomForUse(used int64) int64 { return min(max(3*used, minRoom), maxRoom) }

// MemoryToLoad returns about how many bytes of memory ovs-vswitchd takes while it loads the
// dumps of a workdir. A flow takes about ten times the length of its text, and a bundle holds
// it once more (measured).
func MemoryToLoad(wd *workdir.Dir) int64 { return 20 * wd.DumpBytes() }

// roomToRestore returns a function that allows an ovs-vswitchd one and a half times the memory
// that loading the dumps takes.
func roomToRestore(wd *workdir.Dir) func(int64) int64 {
	need := MemoryToLoad(wd)
	return func(int64) int64 { return 2*minRoom + need + need/2 }
}

// limitMemory limits the memory of ovs-vswitchd. Where that fails, the report says so.
func (s *starter) limitMemory(ctx context.Context, room func(int64) int64) error {
	state, err := s.rt.State(ctx, vswitchd(s.wd))
	if err != nil {
		return err
	}
	if s.memory, err = daemon.LimitMemory(state.PID, room); err != nil {
		s.report.Remark(fmt.Sprintf("the memory of ovs-vswitchd is not limited (%v): a trace that does not end, as Open vSwitch 3.1.0 has them, can use all of this machine's", err))
	}
	return nil
}

// memoryReached returns the probable reason for which an ovs-vswitchd with a limit has
// ended, "" without a limit.
func memoryReached(limit int64) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf("its memory was limited to %d MiB, which a trace that does not end reaches", limit/mebibyte)
}

// endedAdvice returns what to do once ovs-vswitchd has ended.
func endedAdvice(limit int64) string {
	why := memoryReached(limit)
	if why != "" {
		why = " (" + why + ")"
	}
	return "ovs-vswitchd has ended" + why + `: "ovs-offline start" starts the replica again`
}

// Advice returns what to do after a tool that asks ovs-vswitchd has failed because
// ovs-vswitchd has ended, "" if it runs or was stopped.
func Advice(wd *workdir.Dir, state State) string {
	if _, held, err := daemon.LockOwner(daemon.PIDFile(vswitchd(wd))); held || err != nil {
		return ""
	}
	return endedAdvice(state.Memory)
}
