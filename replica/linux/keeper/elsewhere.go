//go:build !linux

// Package keeper restores the network namespaces of a node in the kernel of this machine, which has to be Linux.
package keeper

import (
	"context"
	"errors"

	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Started is a keeper, of which this system has none.
type Started struct{}

// Start returns why there are no network namespaces.
func Start(*workdir.Dir) (*Started, error) {
	return nil, errors.New("network namespaces are restored on Linux only")
}

// Report returns nothing.
func (*Started) Report(context.Context) ([]*report.Namespace, error) { return nil, nil }

// Complete does nothing.
func (*Started) Complete() error { return nil }

// Close does nothing.
func (*Started) Close() error { return nil }

// PID returns 0: no keeper runs.
func PID(*workdir.Dir) int { return 0 }

// Stop does nothing: no keeper runs.
func Stop(context.Context, *workdir.Dir) error { return nil }
