// Command apiserver runs a real kube-apiserver and its etcd in one process, for the
// tests of collect-k8s. Its arguments are the folder for etcd's data and the flags of
// kube-apiserver:
//
//	apiserver DIR FLAG...
//
// DIR also holds etcd's unix sockets; --etcd-servers is set to one of them. The program
// ends when its standard input is closed.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: apiserver DIR FLAG...")
		os.Exit(2)
	}
	etcd, err := startEtcd(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	command := app.NewAPIServerCommand()
	command.SetArgs(append([]string{"--etcd-servers=" + etcd.Config().AdvertiseClientUrls[0].String()}, os.Args[2:]...))
	code := cli.Run(command)
	etcd.Close()
	os.Exit(code)
}

// startEtcd serves an empty database on a unix socket in dir. Its data need not survive
// the process.
func startEtcd(dir string) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "data")
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	config.LogOutputs = []string{filepath.Join(dir, "etcd.log")}
	// In a unix URL, etcd reads the host as a path, and requires a port.
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	client := url.URL{Scheme: "unix", Host: "client:0"}
	peer := url.URL{Scheme: "unix", Host: "peer:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-etcd.Server.StopNotify():
		err = errors.New("it ended")
	}
	etcd.Close()
	return nil, err
}
