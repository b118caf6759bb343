package namespace

import (
	"syscall"
	"unsafe"
)

// A runner runs tools for the process that started it, each as quickly as if it were
// started without namespaces: to make them for each tool takes five times as long.
//
// RunnerSocket is the descriptor of its socket of type SOCK_SEQPACKET. Each message has
// RunnerFiles descriptors: a file with the words of the tool (its environment, End, and
// its arguments, each ended by a NUL), its standard input, output and error, and a socket
// of the same type for its state. There the runner sends RunnerStarted with the process
// ID, and RunnerExited or RunnerSignalled with a number once the tool has ended; or
// RunnerFailed with the number of the error. The process ID belongs to the tool until
// the other end of that socket is closed. The runner ends when the other end of its own is
// closed and the tools have ended.
const (
	RunnerSocket = 3
	RunnerFiles  = 5

	RunnerStarted   = 's'
	RunnerExited    = 'x'
	RunnerSignalled = 'k'
	RunnerFailed    = 'f'
)

// Constants of the kernel's interface that package syscall lacks (linux/prctl.h,
// linux/wait.h, asm-generic/siginfo.h).
const (
	prSetDumpable = 4
	pPID          = 1
	wNoWait       = 0x01000000
	wExited       = 4
	cldExited     = 1
)

// runTools returns only if a step failed. Tools are started on the thread that
// has given up its privileges.
func runTools() failure {
	syscall.CloseOnExec(RunnerSocket)
	// Tools must not trace this process, whose other threads still have privileges, nor
	// open its program, which is a file of the host.
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetDumpable, 0, 0, 0, 0, 0); errno != 0 {
		return failed("hiding the runner", errno)
	}
	ended := make(chan struct{}, 1)
	for running := 0; ; {
		files, err := receive(RunnerSocket)
		if err != nil {
			return failed("receiving a request", err)
		}
		if len(files) == 0 {
			for ; running > 0; running-- {
				<-ended
			}
			syscall.Exit(0)
		}
		if len(files) == RunnerFiles && runTool(files, ended) {
			running++
		}
		for more := true; more; {
			select {
			case <-ended:
				running--
			default:
				more = false
			}
		}
	}
}

// receive returns the descriptors of a message; none when the socket was closed.
func receive(socket int) ([]int, error) {
	text, control := make([]byte, 1), make([]byte, syscall.CmsgSpace(4*RunnerFiles))
	for {
		n, size, _, _, err := syscall.Recvmsg(socket, text, control, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		if n == 0 || err != nil {
			return nil, err
		}
		messages, err := syscall.ParseSocketControlMessage(control[:size])
		if err != nil || len(messages) == 0 {
			return nil, err
		}
		return syscall.ParseUnixRights(&messages[0])
	}
}

// runTool starts a tool, waits for its end in the background, and then sends to ended.
func runTool(files []int, ended chan<- struct{}) (started bool) {
	env, argv, _ := cut(readWords(files[0]))
	pid, err := 0, error(syscall.EINVAL)
	if len(argv) > 0 {
		pid, err = syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: env, Files: []uintptr{uintptr(files[1]), uintptr(files[2]), uintptr(files[3])}})
	}
	state := files[4]
	for _, fd := range files[:4] {
		syscall.Close(fd)
	}
	if err != nil {
		send(state, RunnerFailed, int(errnoOf(err)))
		syscall.Close(state)
		return false
	}
	send(state, RunnerStarted, pid)
	go func() {
		await(pid, state)
		ended <- struct{}{}
	}()
	return true
}

// await sends how a tool ended, and releases its process ID once the receiver agrees.
func await(pid, state int) {
	var info struct { // siginfo_t of SIGCHLD on 64-bit systems, sigaction(2)
		_, _, code, _ int32
		_, _          int32
		status        int32
		_             [100]byte
	}
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	kind := byte(RunnerSignalled)
	if info.code == cldExited {
		kind = RunnerExited
	}
	send(state, kind, int(info.status))
	for {
		if _, err := syscall.Read(state, make([]byte, 1)); err != syscall.EINTR {
			break
		}
	}
	syscall.Wait4(pid, nil, 0, nil)
	syscall.Close(state)
}

// send sends a letter and a number in decimal.
func send(socket int, kind byte, number int) { write(socket, string(rune(kind))+decimal(number)) }

func decimal(number int) string {
	digits := ""
	for ; number > 0 || digits == ""; number /= 10 {
		digits = string(rune('0'+number%10)) + digits
	}
	return digits
}
