package peer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestBatch: changes that come during a write are made by one more write, and each caller waits for its own.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBatchWriter()
		var stored []Contact
		writes := 0
		begin := make(chan struct{})
		change := func(edit contactEdit) error {
			<-begin
			writes++
			now, err := edit(slices.Clone(stored))
			if now != nil {
				stored = now
			}
			return err
		}
		add := func(name string) {
			err := w.write(func(all []Contact) ([]Contact, error) { return append(all, Contact{Name: name}), nil }, change)
			if err != nil || !slices.ContainsFunc(stored, func(k Contact) bool { return k.Name == name }) {
				t.Errorf("%s is not stored: %v", name, err)
			}
		}
		var calls sync.WaitGroup
		calls.Go(func() { add("first") })
		synctest.Wait()
		for i := range 50 {
			calls.Go(func() { add(fmt.Sprint("site-", i)) })
		}
		calls.Go(func() { // nothing to change
			if err := w.write(func([]Contact) ([]Contact, error) { return nil, nil }, change); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		begin <- struct{}{}
		synctest.Wait()
		begin <- struct{}{}
		calls.Wait()
		if writes != 2 || len(stored) != 51 {
			t.Errorf("%d writes stored %d contacts", writes, len(stored))
		}
	})
}
