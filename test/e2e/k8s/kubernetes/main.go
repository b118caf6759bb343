// Command kubernetes runs one part of a real Kubernetes cluster, for tests:
//
//	kubernetes apiserver DIR FLAG...
//	kubernetes kubelet FLAG...
//	kubernetes scheduler FLAG...
//	kubernetes controller-manager FLAG...
//
// The first is kube-apiserver with an etcd of its own, whose data and unix sockets are
// in DIR; --etcd-servers is set to one of them. Started again with the same DIR, it has
// the same objects. The others are what their names say. All of them end when their
// standard input is closed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = `usage: kubernetes apiserver DIR FLAG...
       kubernetes kubelet FLAG...
       kubernetes scheduler FLAG...
       kubernetes controller-manager FLAG...`

func main() {
	switch args := os.Args[1:]; {
	case len(args) >= 2 && args[0] == "apiserver":
		os.Exit(runAPIServer(args[1], args[2:]))
	case len(args) >= 1 && args[0] == "kubelet":
		os.Exit(run(kubelet.NewKubeletCommand(context.Background()), args[1:]))
	case len(args) >= 1 && args[0] == "scheduler":
		os.Exit(run(scheduler.NewSchedulerCommand(), args[1:]))
	case len(args) >= 1 && args[0] == "controller-manager":
		os.Exit(run(controllers.NewControllerManagerCommand(), args[1:]))
	}
	fmt.Fprintln(os.Stderr, usage)
	os.Exit(2)
}

func runAPIServer(dir string, flags []string) int {
	etcd, err := startEtcd(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	defer etcd.Close()
	address := etcd.Config().AdvertiseClientUrls[0].String()
	return run(apiserver.NewAPIServerCommand(), append([]string{"--etcd-servers=" + address}, flags...))
}

// run runs a command of Kubernetes until it ends, or until the end of standard input.
func run(command *cobra.Command, flags []string) int {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	command.SetArgs(flags)
	return cli.Run(command)
}
