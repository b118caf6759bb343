package trace

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"ovs-offline/answer/trace/answer"
)

// Asked is a question with its answer, or with the error of Ask.
type Asked struct {
	Between
	Answer *answer.Answer
	Err    error
}

// AskAll asks questions as Run does.
func (s *Session) AskAll(ctx context.Context, questions iter.Seq[Between]) iter.Seq[Asked] {
	return askInOrder(ctx, questions, func(ctx context.Context, q Between) Asked {
		a, err := s.Ask(ctx, q)
		return Asked{q, a, err}
	})
}

// askInOrder asks questions, as many at once as there are processors, and yields the results
// in their order. Only as many results as are asked at once are held in memory.
func askInOrder[Q, R any](ctx context.Context, questions iter.Seq[Q], ask func(context.Context, Q) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		pending := make(chan chan R, 4*runtime.NumCPU())
		wg.Go(func() {
			defer close(pending)
			for question := range questions {
				one := make(chan R, 1)
				select {
				case pending <- one:
				case <-ctx.Done():
					return
				}
				wg.Go(func() { one <- ask(ctx, question) })
			}
		})
		for one := range pending {
			if r := <-one; ctx.Err() != nil || !yield(r) {
				return
			}
		}
	}
}
