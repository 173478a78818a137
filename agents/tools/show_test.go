package tools_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/rpc"
)

// wall is a display and a camera whose driver hangs while it is told to.
type wall struct {
	mu    sync.Mutex
	calls int
	hang  chan struct{} // nil for not
}

func (*wall) Describe() device.Description {
	return device.Description{Model: "wall", Points: []device.Point{{Name: "text", Kind: device.KindText}, {Name: "image", Kind: device.KindImage}}}
}
func (*wall) Close() error { return nil }

func (w *wall) called() {
	w.mu.Lock()
	w.calls++
	hang := w.hang
	w.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

func (w *wall) Show(context.Context, string, string) error { w.called(); return nil }
func (w *wall) Capture(context.Context, string) (device.Image, error) {
	w.called()
	return device.Image{MIME: "image/png", Data: []byte{1}, At: time.Now()}, nil
}

// TestHangingDisplay: a driver that hangs is called once, however often and by whomever
// it is asked for, and again when it has come back.
func TestHangingDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wall{hang: make(chan struct{})}
		r := newRig(t, []node.Device{thing("wall", w)})
		defer r.stop()
		part := r.seeing(t, func(agents.Ask) bool { return true })
		call := func(r *rig, tool, args string) error {
			_, err := r.Call(t.Context(), anna, tools.Call{Tool: tool, Args: rpc.RawJSON([]byte(args))})
			return err
		}
		const show, capture = `{"display":"wall/text","text":"x"}`, `{"camera":"wall/image"}`
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := call(r, "show_text", show); err == nil || device.AsFault(err).Kind != device.Offline {
					t.Errorf("show_text: %v", err)
				}
			})
			all.Go(func() {
				if err := call(part, "capture_image", capture); err == nil || device.AsFault(err).Kind != device.Offline {
					t.Errorf("capture_image: %v", err)
				}
			})
			time.Sleep(time.Minute)
		}
		all.Wait()
		w.mu.Lock()
		if w.calls != 1 {
			t.Errorf("it was called %d times", w.calls)
		}
		close(w.hang)
		w.hang = nil
		w.mu.Unlock()
		synctest.Wait()
		if err := call(part, "show_text", show); err != nil {
			t.Error(err)
		}
		if err := call(r, "capture_image", capture); err != nil {
			t.Error(err)
		}
	})
}
