package drift

import (
	"context"
)

func (c *comparison) logicalFlows(ctx context.Context) error { return nil }

type Northd struct{}
