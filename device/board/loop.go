package board

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"agentsite/device"
)

// loopChanges is the number of levels that Loop drives, and loopWait bounds its wait for each to arrive.
const (
	loopChanges = 20
	loopWait    = 50 * time.Millisecond
)

// Loop is the result of a test of two bridged lines.
type Loop struct {
	Changes int           `json:"changes"` // driven at the first line
	Arrived int           `json:"arrived"` // of them, read at the second
	Edges   int           `json:"edges"`   // of them, reported by the kernel; -1 where the chip reports none
	Slowest time.Duration `json:"-"`       // from before a level was driven to its reading
}

// TestLoop drives a line that is bridged to another one, and reads its levels there. It refuses lines that are in
// use. It blocks for at most a second and some, and leaves both as inputs, without a pull: whatever else is
// connected to them sees the levels.
func (b *Board) TestLoop(from, to Pin) (l Loop, err error) {
	if from == to {
		return l, device.Faultf(device.Invalid, "a loop needs two lines, and both are %s", from)
	}
	if err := b.CheckFree(from, to); err != nil {
		return l, err
	}
	in, err := b.Input(to, InputOptions{Pull: PullDown, Edges: true})
	if err != nil {
		return l, err
	}
	defer in.Close()
	out, err := b.Output(from, OutputOptions{})
	if err != nil {
		return l, err
	}
	defer func() {
		err = errors.Join(err, out.Close(), b.float(from))
	}()
	ctx, cancel := context.WithTimeout(context.Background(), loopChanges*loopWait)
	defer cancel()
	var edges atomic.Int64
	watched := make(chan error, 1)
	if in.ReportsEdges() {
		go func() {
			watched <- in.Watch(ctx, time.Time{}, func(Edge) {
				if edges.Add(1) == loopChanges {
					cancel()
				}
			})
		}()
	} else {
		edges.Store(-1)
		watched <- nil
	}
	for i := range loopChanges {
		level, begun := i%2 == 0, time.Now()
		if err := out.Set(level); err != nil {
			return l, err
		}
		l.Changes++
		for time.Since(begun) < loopWait {
			now, err := in.Get()
			if err != nil {
				return l, err
			}
			if now == level {
				l.Arrived++
				l.Slowest = max(l.Slowest, time.Since(begun))
				break
			}
		}
	}
	if l.Arrived < l.Changes {
		cancel() // nobody waits for edges that will not come
	}
	<-watched
	l.Edges = int(edges.Load())
	return l, nil
}

// float makes a released output an input, as it was before: a Raspberry Pi's kernel keeps its level.
func (b *Board) float(p Pin) error {
	line, err := b.Input(p, InputOptions{Pull: PullNone})
	if err != nil {
		return err
	}
	return line.Close()
}
