//go:build linux

package keeper

import "context"

func (s *space) restoreSets(ctx context.Context) {}
