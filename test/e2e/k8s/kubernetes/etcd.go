package main

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd serves the database in dir on a unix socket there. Its data survives the
// process, but not the machine.
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
