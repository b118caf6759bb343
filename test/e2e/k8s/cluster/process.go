package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Process is a server that can be stopped, killed, and started again with the same
// arguments.
type Process struct {
	// Restarts lets the process start again if it aborts, as a kubelet restarts a container.
	Restarts bool

	name   string
	argv   []string
	dir    string // its working directory
	log    string // the file to which it writes
	cgroup string // the folder of the cgroup2 in which it runs

	mu      sync.Mutex
	command *exec.Cmd
	alive   io.Closer     // its standard input
	ended   chan struct{} // closed when it has ended
}

// Start starts the process. It does not wait until it serves.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cgroup, err := os.Open(p.cgroup)
	if err != nil {
		return err
	}
	defer cgroup.Close()
	command := exec.Command(p.argv[0], p.argv[1:]...)
	command.Dir, command.Stdout, command.Stderr = p.dir, log, log
	// Ctrl-C does not reach it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	alive, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.command, p.alive, p.ended = command, alive, make(chan struct{})
	go func(ended chan struct{}) {
		command.Wait()
		close(ended)
		if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); p.Restarts && ok && status.Signal() == syscall.SIGABRT {
			p.Start()
		}
	}(p.ended)
	return nil
}

// Signal sends a signal, such as SIGSTOP, to the process if it runs.
func (p *Process) Signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command != nil {
		p.command.Process.Signal(s)
	}
}

// Kill kills the process, if it was started, and waits until it has ended.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	p.mu.Lock()
	command, alive, ended := p.command, p.alive, p.ended
	p.mu.Unlock()
	if command == nil {
		return
	}
	command.Process.Kill()
	<-ended
	alive.Close()
}

// PID returns the process's id.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.command.Process.Pid
}

// Await calls check until it returns nil or the process ends.
func (p *Process) Await(ctx context.Context, check func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.hasEnded():
			cancel(errors.New("it ended"))
		case <-ctx.Done():
		}
	}()
	if err := await(ctx, check); err != nil {
		return fmt.Errorf("%s: %w (%v)\n%s", p.name, err, context.Cause(ctx), p.tail())
	}
	return nil
}

func (p *Process) hasEnded() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// tail returns the end of the process's log.
func (p *Process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
