package snapshot

import (
	"context"
	goruntime "runtime"
	"sync"

	"ovs-offline/workdir"
)

// Outcome is the result of an action on one node.
type Outcome[T any] struct {
	Node  *Node
	Value T
	Err   error
}

// parallelNodes returns how many nodes are worked on at the same time: two for each core, because
// a start waits for the shared server of another, and for daemons.
func parallelNodes() int { return 2 * goruntime.NumCPU() }

// Each calls do for every selected node with its workdir for reading, for several at once,
// and returns the outcomes in the order of the nodes. An error of one node does not keep
// do from the others.
func Each[T any](ctx context.Context, s *Snapshot, do func(ctx context.Context, node *Node, wd *workdir.Dir) (T, error)) []Outcome[T] {
	return EachOf(ctx, s.nodes, func(ctx context.Context, node *Node) (value T, err error) {
		wd, err := node.Workdir()
		if err != nil {
			return value, err
		}
		return do(ctx, node, wd)
	})
}

// EachLocked works like Each, but with each workdir locked while do runs.
func EachLocked[T any](ctx context.Context, s *Snapshot, do func(ctx context.Context, node *Node, wd *workdir.Dir) (T, error)) []Outcome[T] {
	return EachOf(ctx, s.nodes, func(ctx context.Context, node *Node) (value T, err error) {
		err = node.locked(func(wd *workdir.Dir) error {
			value, err = do(ctx, node, wd)
			return err
		})
		return value, err
	})
}

// EachOf calls do for each of the nodes, for several at once, and returns the outcomes in their order.
func EachOf[T any](ctx context.Context, nodes []*Node, do func(ctx context.Context, node *Node) (T, error)) []Outcome[T] {
	outcomes := make([]Outcome[T], len(nodes))
	slots := make(chan struct{}, parallelNodes())
	var wg sync.WaitGroup
	for i, node := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			outcomes[i].Node = node
			if outcomes[i].Err = ctx.Err(); outcomes[i].Err == nil {
				outcomes[i].Value, outcomes[i].Err = do(ctx, node)
			}
		})
	}
	wg.Wait()
	return outcomes
}
