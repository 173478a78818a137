package proc

import (
	"context"
	"testing"
	"testing/synctest"

	"agentsite/device"
)

// TestHungByItself: a device that hangs does not stand for the one that replaces it, also if it is
// replaced during the call; and a call that ends does not stand for one that still hangs.
func TestHungByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := &box{}, &box{}
		s := &server{devices: map[string]device.Device{"box": old}, hung: make(map[device.Device][]<-chan struct{}), watches: make(map[string]*deviceWatch)}
		s.follow = func(context.Context, []byte) (map[string]device.Device, error) {
			return map[string]device.Device{"box": next}, nil
		}
		back, soon := make(chan struct{}), make(chan struct{})
		ask := func(d device.Device, until chan struct{}) error {
			_, err := asked(t.Context(), s, "box", d, func(context.Context) (struct{}, error) { <-until; return struct{}{}, nil })
			return err
		}
		late := make(chan error, 2)
		go func() { late <- ask(old, back) }()
		go func() { late <- ask(old, soon) }()
		synctest.Wait()
		close(soon)
		<-late
		if err := <-late; err == nil {
			t.Fatal("it does not hang")
		}
		if err := ask(old, soon); device.AsFault(err).Kind != device.Offline {
			t.Errorf("a device that hangs is called again: %v", err)
		}
		s.hung = make(map[device.Device][]<-chan struct{})
		go func() { late <- ask(old, back) }()
		synctest.Wait()
		if err := s.change(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		<-late
		if err := ask(next, soon); err != nil {
			t.Errorf("the device that replaced it: %v", err)
		}
		close(back)
	})
}
